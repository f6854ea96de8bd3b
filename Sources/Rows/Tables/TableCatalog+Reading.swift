import Values
import Visibility

extension TableCatalog {
    /// Reads a file of tables (`tables.schema.json` describes it). Any mistake refuses the whole file.
    ///
    /// - Parameters:
    ///   - document: The file; YAML is converted to values elsewhere.
    ///   - reserved: The names that the service itself uses.
    /// - Throws: `invalid` with code `tables.invalid`: the first ``TableLimits/mistakesMax`` mistakes, each with its
    ///   place (`/tables/3/audience/select/0`).
    public init(reading document: JSONValue, reserved: ReservedNames = ReservedNames()) throws(Failure) {
        var reader = TableFileReader()
        let (tables, topics, drafts) = reader.declarations(of: document)
        reader.compare(tables, topics, reserved: reserved)
        let known = tables.compactMap(\.declaration)
        // A table that could not be read may have the membership that a rule names.
        let contacts =
            known.count == tables.count
            ? reader.contacts(drafts, known, topics.map(\.declaration), reserved: reserved) : .open
        guard reader.mistakes.isEmpty else { throw reader.failure }
        self.init(checked: known, topics: topics.map(\.declaration), contacts: contacts)
    }
}

/// A reader of declarations that collects their mistakes.
///
/// A table with a mistake is read to its end with placeholders, so that all its mistakes are reported. It is left out
/// of the checks between tables.
struct TableFileReader {
    struct Read {
        let pointer: String
        let declaration: TableDeclaration?
    }

    private(set) var mistakes: [Failure.Field] = []

    var failure: Failure {
        let shown = mistakes.prefix(TableLimits.mistakesMax)
        let more = mistakes.count > shown.count ? " Only the first \(shown.count) are listed." : ""
        return Failure(
            .invalid, "tables.invalid",
            mistakes.count == 1
                ? "The table file has a mistake." : "The table file has \(mistakes.count) mistakes.\(more)",
            fields: Array(shown))
    }

    mutating func reject(_ pointer: String, _ detail: String) {
        mistakes.append(Failure.Field(pointer, detail))
    }

    /// A declaration of topics, with its place.
    typealias Topic = (pointer: String, declaration: TopicDeclaration)

    mutating func declarations(
        of document: JSONValue
    ) -> (tables: [Read], topics: [Topic], contacts: [ContactDraft]) {
        guard case .object(let members) = document else {
            reject("", "must be an object with the field tables, not \(document.typeName)")
            return ([], [], [])
        }
        var file = Fields(members)
        _ = file.int("version", in: 1...1)
        let named = file.objects("topics", countMax: TableLimits.topicsMax)
        let hasContacts = file.has("contacts")
        let contacts = hasContacts ? file.object("contacts", required: true) { $0.contacts() } ?? [] : []
        let items = file.objects(
            "tables", countMax: TableLimits.tablesMax, required: named.isEmpty && !hasContacts)
        _ = close(&file)
        let topics = named.compactMap { item -> Topic? in
            var fields = Fields(item.members, at: "/\(item.place)")
            let declaration = fields.topic()
            return close(&fields) ? declaration.map { ("/\(item.place)", $0) } : nil
        }
        let tables = items.map { item in
            let pointer = "/\(item.place)"
            var fields = Fields(item.members, at: pointer)
            let declaration = fields.table()
            guard close(&fields) else { return Read(pointer: pointer, declaration: nil) }
            check(declaration, at: pointer)
            return Read(pointer: pointer, declaration: declaration)
        }
        return (tables, topics, contacts)
    }

    /// Adds the mistakes that the reader of an object found; returns true if it found no mistake.
    private mutating func close(_ fields: inout Fields) -> Bool {
        do throws(Failure) {
            try fields.finish()
            return true
        } catch {
            mistakes += error.fields
            return false
        }
    }
}

// MARK: - Members of a declaration of topics

extension Fields {
    fileprivate mutating func topic() -> TopicDeclaration? {
        let text = string("pattern", bytesMax: TableLimits.templateBytesMax)
        let pattern = text.isEmpty ? nil : template(text, at: "pattern")
        let templates = (array("audience", countMax: TableLimits.templatesMax, required: true) ?? []).enumerated()
            .compactMap { index, value -> AudienceTemplate? in
                guard case .string(let text) = value else {
                    reject("audience/\(index)", "must be a template such as user:{id}, not \(value.typeName)")
                    return nil
                }
                return template(text, at: "audience/\(index)")
            }
        guard let pattern else { return nil }
        guard pattern.segments.count == 2, case .constant(let prefix) = pattern.segments[0],
            case .column(let column) = pattern.segments[1], Self.isTopicPrefix(prefix)
        else {
            reject(
                "pattern",
                "must be 1 to \(TableLimits.topicPrefixBytesMax) letters, digits, - and _, then a colon and a name "
                    + "in braces, such as order:{id}")
            return nil
        }
        for (index, template) in templates.enumerated() where template.columns.contains(where: { $0 != column }) {
            reject(
                "audience/\(index)", "\(template) uses a column other than {\(column)}, but a topic has only this one")
        }
        return TopicDeclaration(prefix: prefix, column: column, audience: templates)
    }

    private static func isTopicPrefix(_ text: String) -> Bool {
        (1...TableLimits.topicPrefixBytesMax).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isAlphanumeric || "-_".utf8.contains($0) }
    }
}

// MARK: - Members of a table

extension Fields {
    fileprivate mutating func table() -> TableDeclaration {
        let schema = optionalName("schema") ?? "public"
        let name = name("table")
        let primaryKey = columns("primaryKey", countMax: TableLimits.primaryKeyColumnsMax, required: true)
        let types = has("types") ? types() : nil
        let tenant = object("tenant", required: true) { $0.tenant() } ?? .constant("")
        let related = related()
        let audience =
            object("audience", required: true) { $0.audience() }
            ?? .init(select: [], insert: [], update: [], delete: [])
        let columns = columns("columns", countMax: TableLimits.columnsMax)
        let groups = objects("invalidates", countMax: TableLimits.groupsMax) { $0.group() }
        let window = optionalInt("windowMs", in: TableLimits.windowMilliseconds)
        let actor = optionalName("actor")
        let origin = optionalName("origin")
        let counts = counts()
        let memberships = objects("memberships", countMax: TableLimits.membershipsPerTableMax) { $0.membership() }
        return TableDeclaration(
            schema: schema, name: name, primaryKey: primaryKey, types: types, tenant: tenant, audience: audience,
            columns: columns, related: related, invalidates: groups,
            window: .milliseconds(window ?? TableLimits.windowDefaultMilliseconds), actorColumn: actor,
            originColumn: origin, counts: counts, memberships: memberships.compactMap(\.self),
            audienceColumns: TableDeclaration.audienceColumns(audience, related, tenant))
    }

    private mutating func types() -> ColumnTypes {
        var types: ColumnTypes = [:]
        for (column, value) in named("types", countMax: ChangeLimits.columnsMax) {
            guard case .string(let name) = value, let type = ColumnType(named: name) else {
                let known = ColumnType.allCases.map(\.rawValue).joined(separator: ", ")
                reject("types/\(column)", "must be one of \(known), or an array of one, such as text[]")
                continue
            }
            types[column] = type
        }
        return types
    }

    private mutating func tenant() -> TenantRule {
        if has("constant") { return .constant(id("constant", TenantRule.self).text) }
        let column = optionalName("column")
        guard has("through") || has("of") else {
            if column == nil { reject("column", "is missing: name a column or a constant") }
            return .column(name: column, parent: nil)
        }
        return .column(name: column, parent: .init(table: name("through"), key: name("of")))
    }

    private mutating func related() -> [String: RelatedColumn] {
        var related: [String: RelatedColumn] = [:]
        for (column, value) in named("related", countMax: TableLimits.relatedMax) {
            guard case .object(let members) = value else {
                reject("related/\(column)", "must be an object, not \(value.typeName)")
                continue
            }
            related[column] = nested(members, at: "related/\(column)") {
                RelatedColumn(membership: $0.name("through"), column: $0.name("of"))
            }
        }
        return related
    }

    private mutating func audience() -> TableDeclaration.Audience {
        let select = entries("select", required: true) ?? []
        return TableDeclaration.Audience(
            select: select, insert: entries("insert", among: select), update: entries("update", among: select),
            delete: entries("delete", among: select))
    }

    private mutating func entries(_ name: String, among select: [AudienceEntry]) -> [AudienceEntry] {
        guard let list = entries(name) else { return select }
        for (index, entry) in list.enumerated() where !select.contains(entry) {
            reject(
                "\(name)/\(index)",
                "\(entry.template) must also be listed in select: only readers of a row may receive its changes"
            )
        }
        return list
    }

    /// Reads templates as texts, or as objects with the state that the row must be in.
    private mutating func entries(_ name: String, required: Bool = false) -> [AudienceEntry]? {
        guard let values = array(name, countMax: TableLimits.templatesMax, required: required) else { return nil }
        var entries: [AudienceEntry] = []
        for (index, value) in values.enumerated() {
            let place = "\(name)/\(index)"
            switch value {
            case .string(let text):
                if let template = template(text, at: place) { entries.append(.init(template: template, when: .init())) }
            case .object(let members):
                nested(members, at: place) { entry in
                    let text = entry.string("template", bytesMax: TableLimits.templateBytesMax)
                    let when = entry.condition()
                    guard !text.isEmpty, let template = entry.template(text, at: "template") else { return }
                    entries.append(.init(template: template, when: when))
                }
            default: reject(place, "must be a template such as user:{user_id}, not \(value.typeName)")
            }
        }
        return entries
    }

    mutating func template(_ text: String, at place: String) -> AudienceTemplate? {
        guard text.utf8.count <= TableLimits.templateBytesMax else {
            reject(place, "must have at most \(TableLimits.templateBytesMax) bytes, but has \(text.utf8.count)")
            return nil
        }
        do {
            let template = try AudienceTemplate(text)
            if template.leadingConstant != nil { return template }
            reject(place, "must begin with a constant, as in user:{user_id}: \(text) could produce any key")
        } catch {
            reject(place, error.reason)
        }
        return nil
    }

    private mutating func group() -> InvalidationGroup {
        let operations = operations()
        let columns = columns("columns", countMax: TableLimits.columnsMax)
        if !columns.isEmpty, !operations.contains(.update) {
            reject("columns", "requires update in after: columns only change in an update")
        }
        return InvalidationGroup(
            operations: operations, columns: columns, keys: queryKeys(), audience: entries("audience"))
    }

    private mutating func operations() -> Set<RowOperation> {
        guard let values = array("after", countMax: RowOperation.allCases.count) else {
            return Set(RowOperation.allCases)
        }
        var operations: Set<RowOperation> = []
        for (index, value) in values.enumerated() {
            guard case .string(let text) = value, let operation = RowOperation(rawValue: text) else {
                let words = RowOperation.allCases.map(\.rawValue).joined(separator: ", ")
                reject("after/\(index)", "must be one of \(words)")
                continue
            }
            operations.insert(operation)
        }
        return operations
    }

    private mutating func queryKeys() -> [QueryKeyTemplate] {
        let values = array("keys", countMax: TableLimits.keysPerGroupMax, required: true) ?? []
        return values.enumerated().compactMap { index, value in
            guard case .array(let parts) = value, (1...TableLimits.keyPartsMax).contains(parts.count) else {
                reject(
                    "keys/\(index)",
                    "must be an array of 1 to \(TableLimits.keyPartsMax) strings, such as [leaderboard, \"{class_id}\"]"
                )
                return nil
            }
            return QueryKeyTemplate(
                parts: parts.enumerated().compactMap { keyPart($0.element, at: "keys/\(index)/\($0.offset)") })
        }
    }

    private mutating func keyPart(_ value: JSONValue, at place: String) -> QueryKeyTemplate.Part? {
        guard case .string(let text) = value, !text.isEmpty, text.utf8.count <= TableLimits.keyPartBytesMax else {
            reject(place, "must be a string of 1 to \(TableLimits.keyPartBytesMax) bytes")
            return nil
        }
        if text.hasPrefix("{"), text.hasSuffix("}"), text.utf8.count > 2 {
            let column = String(text.dropFirst().dropLast())
            return checkName(column, at: place) ? .column(column) : nil
        }
        guard !text.contains("{"), !text.contains("}"), text.hasNoControls else {
            reject(place, "'\(text)' is neither a constant nor a single {column}")
            return nil
        }
        return .constant(text)
    }

    private mutating func counts() -> [String: String] {
        let members = named("counts", countMax: TableLimits.countsMax)
        return nested(Dictionary(uniqueKeysWithValues: members), at: "counts") { counts in
            Dictionary(uniqueKeysWithValues: members.map { count, _ in (count, counts.name(count)) })
        }
    }

    private mutating func membership() -> MembershipDeclaration? {
        let name = name("name")
        let subject = membershipTemplate("subject")
        let grants = membershipTemplate("grants")
        let role = has("role") ? string("role", bytesMax: TableLimits.nameBytesMax) : nil
        let when = condition()
        guard let subject, let grants else { return nil }
        if ["user", "tenant", "everyone"].contains(grants.leadingConstant) {
            reject("grants", "\(grants) can only come from the token: a row must not change a caller's identity")
        }
        return MembershipDeclaration(name: name, subject: subject, grants: grants, role: role, when: when)
    }

    private mutating func membershipTemplate(_ name: String) -> AudienceTemplate? {
        let text = string(name, bytesMax: TableLimits.templateBytesMax)
        guard !text.isEmpty, let template = template(text, at: name) else { return nil }
        if template.columns.count == 1 { return template }
        reject(name, "\(text) must have exactly one column: a membership ties one id to another")
        return nil
    }

    private mutating func condition() -> RowCondition {
        var (allowed, denied): ([String: [JSONValue]], [String: [JSONValue]]) = ([:], [:])
        for (column, listed) in named("when", countMax: TableLimits.conditionColumnsMax) {
            var (value, isDenial) = (listed, false)
            if case .object(let members) = listed, members.count == 1, let excluded = members["not"] {
                (value, isDenial) = (excluded, true)
            }
            let values = if case .array(let list) = value { list } else { [value] }
            guard (1...TableLimits.conditionValuesMax).contains(values.count) else {
                reject("when/\(column)", "must list 1 to \(TableLimits.conditionValuesMax) values")
                continue
            }
            for value in values {
                switch value {
                case .array, .object:
                    reject("when/\(column)", "must be compared with strings, numbers, booleans or null")
                default: continue
                }
            }
            if isDenial { denied[column] = values } else { allowed[column] = values }
        }
        return RowCondition(allowed, denied: denied)
    }
}

// MARK: - Values

extension Fields {
    fileprivate mutating func object<Result>(
        _ name: String, required _: Bool, _ read: (inout Fields) -> Result
    ) -> Result? {
        guard value(name) == nil else { return object(name, read) }
        reject(name, "is missing")
        return nil
    }

    private mutating func array(_ name: String, countMax: Int, required: Bool = false) -> [JSONValue]? {
        guard let value = value(name) else {
            if required || has(name) { reject(name, "is missing") }
            return nil
        }
        guard case .array(let values) = value else {
            reject(name, "must be an array, not \(value.typeName)")
            return nil
        }
        guard (1...countMax).contains(values.count) else {
            reject(name, "must have 1 to \(countMax) elements, but has \(values.count)")
            return nil
        }
        return values
    }

    fileprivate mutating func objects(
        _ name: String, countMax: Int, required: Bool = false
    ) -> [(members: [String: JSONValue], place: String)] {
        let values = array(name, countMax: countMax, required: required) ?? []
        return values.enumerated().compactMap { index, value in
            if case .object(let members) = value { return (members, "\(name)/\(index)") }
            reject("\(name)/\(index)", "must be an object, not \(value.typeName)")
            return nil
        }
    }

    private mutating func objects<Result>(
        _ name: String, countMax: Int, _ read: (inout Fields) -> Result
    ) -> [Result] {
        objects(name, countMax: countMax).map { nested($0.members, at: $0.place, read) }
    }

    /// Returns the members of an object whose names are columns, ordered by name.
    private mutating func named(_ name: String, countMax: Int) -> [(key: String, value: JSONValue)] {
        let members = openObject(name) ?? [:]
        if members.count > countMax { reject(name, "must have at most \(countMax) fields") }
        for member in members.keys.sorted() { checkName(member, at: "\(name)/\(member)") }
        return members.sorted { $0.key < $1.key }
    }

    /// Reads unique names of columns.
    private mutating func columns(_ name: String, countMax: Int, required: Bool = false) -> [String] {
        var names: [String] = []
        for (index, value) in (array(name, countMax: countMax, required: required) ?? []).enumerated() {
            guard case .string(let text) = value, isName(text) else {
                reject("\(name)/\(index)", nameRule)
                continue
            }
            if names.contains(text) { reject("\(name)/\(index)", "occurs twice") }
            names.append(text)
        }
        return names
    }

    private mutating func name(_ name: String) -> String {
        let text = string(name)
        if !text.isEmpty { checkName(text, at: name) }
        return text
    }

    private mutating func optionalName(_ name: String) -> String? { has(name) ? self.name(name) : nil }

    @discardableResult private mutating func checkName(_ text: String, at place: String) -> Bool {
        if isName(text) { return true }
        reject(place, nameRule)
        return false
    }
}

private let nameRule =
    "must be a name of 1 to \(TableLimits.nameBytesMax) bytes, without control characters and without { } and :"

/// Whether a template can use the name. Databases allow more names, in quotes.
private func isName(_ text: String) -> Bool {
    text.utf8.count <= TableLimits.nameBytesMax && AudienceTemplate.isColumnName(text)
}

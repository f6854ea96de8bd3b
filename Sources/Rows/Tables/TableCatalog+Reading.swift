import Values
import Visibility

extension TableCatalog {
    /// Reads a file of tables (`tables.schema.json` describes it) and refuses it whole if anything in it is wrong.
    ///
    /// - Parameters:
    ///   - document: the file; YAML is turned into values elsewhere.
    ///   - reserved: templates of other tables of the service. A template here that could make one of their keys with
    ///     another meaning would open their rows.
    /// - Throws: `invalid` with code `tables.invalid`: the first ``TableLimits/mistakesMax`` mistakes, each with its
    ///   place (`/tables/3/audience/select/0`).
    public init(reading document: JSONValue, reserved: [AudienceTemplate] = []) throws(Failure) {
        var reader = TableFileReader()
        let tables = reader.tables(of: document)
        reader.compare(tables, reserved: reserved)
        guard reader.mistakes.isEmpty else { throw reader.failure }
        self.init(checked: tables.compactMap(\.declaration))
    }
}

/// The reader of declarations, which collects their mistakes.
///
/// A table with a mistake is read to its end with placeholders, so that all its mistakes are reported, and left out of
/// the comparison of tables with one another.
struct TableFileReader {
    struct Read {
        let pointer: String
        let declaration: TableDeclaration?
    }

    private(set) var mistakes: [Failure.Field] = []

    var failure: Failure {
        let shown = mistakes.prefix(TableLimits.mistakesMax)
        let more = mistakes.count > shown.count ? " The first \(shown.count) are told." : ""
        return Failure(
            .invalid, "tables.invalid",
            mistakes.count == 1
                ? "The file of tables has a mistake." : "The file of tables has \(mistakes.count) mistakes.\(more)",
            fields: Array(shown))
    }

    mutating func reject(_ pointer: String, _ detail: String) {
        mistakes.append(Failure.Field(pointer, detail))
    }

    // MARK: The file

    mutating func tables(of document: JSONValue) -> [Read] {
        guard case .object(let members) = document else {
            reject("", "must be an object with the member tables, not \(document.typeName)")
            return []
        }
        var fields = Fields(members)
        _ = fields.int("version", in: 1...1)
        let items = objects(&fields, "tables", at: "", countMax: TableLimits.tablesMax, required: true)
        close(&fields)
        return items.map { table($0.members, at: $0.pointer) }
    }

    private mutating func table(_ members: [String: JSONValue], at pointer: String) -> Read {
        let before = mistakes.count
        var fields = Fields(members, at: pointer)
        let schema = fields.has("schema") ? name(&fields, "schema") : "public"
        let name = name(&fields, "table")
        let primaryKey = names(&fields, "primaryKey", countMax: TableLimits.primaryKeyColumnsMax, required: true)
        let tenant = tenant(&fields, at: pointer)
        let related = related(&fields, at: pointer)
        let audience = audience(&fields, at: pointer)
        let columns = names(&fields, "columns", countMax: TableLimits.columnsMax)
        let groups = groups(&fields, at: pointer)
        let window = fields.optionalInt("windowMs", in: TableLimits.windowMilliseconds)
        let actor = fields.has("actor") ? self.name(&fields, "actor") : nil
        let origin = fields.has("origin") ? self.name(&fields, "origin") : nil
        let counts = counts(&fields, at: pointer)
        let memberships = memberships(&fields, at: pointer)
        close(&fields)
        guard mistakes.count == before else { return Read(pointer: pointer, declaration: nil) }
        let declaration = TableDeclaration(
            schema: schema, name: name, primaryKey: primaryKey, tenant: tenant, audience: audience, columns: columns,
            related: related, invalidates: groups,
            window: .milliseconds(window ?? TableLimits.windowDefaultMilliseconds), actorColumn: actor,
            originColumn: origin, counts: counts, memberships: memberships)
        check(declaration, at: pointer)
        return Read(pointer: pointer, declaration: declaration)
    }

    // MARK: Members of a table

    private mutating func tenant(_ fields: inout Fields, at pointer: String) -> TenantRule {
        guard let members = object(&fields, "tenant", required: true) else { return .constant("") }
        var tenant = Fields(members, at: "\(pointer)/tenant")
        defer { close(&tenant) }
        if tenant.has("constant") {
            let value = tenant.string("constant", bytesMax: Fields.idBytesMax)
            if !value.isEmpty, !Fields.isIdentifier(value) {
                tenant.reject("constant", "must not contain control characters")
            }
            return .constant(value)
        }
        let column = tenant.has("column") ? name(&tenant, "column") : nil
        guard tenant.has("through") || tenant.has("of") else {
            if column == nil { tenant.reject("column", "is missing; a tenant is a column or a constant") }
            return .column(name: column, parent: nil)
        }
        return .column(name: column, parent: .init(table: name(&tenant, "through"), key: name(&tenant, "of")))
    }

    private mutating func related(_ fields: inout Fields, at pointer: String) -> [String: RelatedColumn] {
        guard let members = object(&fields, "related") else { return [:] }
        let place = "\(pointer)/related"
        if members.count > TableLimits.relatedMax {
            reject(place, "must have at most \(TableLimits.relatedMax) members")
        }
        var related: [String: RelatedColumn] = [:]
        for (column, value) in members.sorted(by: { $0.key < $1.key }) {
            checkName(column, at: "\(place)/\(column)")
            guard case .object(let inner) = value else {
                reject("\(place)/\(column)", "must be an object, not \(value.typeName)")
                continue
            }
            var entry = Fields(inner, at: "\(place)/\(column)")
            related[column] = RelatedColumn(membership: name(&entry, "through"), column: name(&entry, "of"))
            close(&entry)
        }
        return related
    }

    private mutating func audience(_ fields: inout Fields, at pointer: String) -> TableDeclaration.Audience {
        guard let members = object(&fields, "audience", required: true) else {
            return .init(select: [], insert: [], update: [], delete: [])
        }
        var inner = Fields(members, at: "\(pointer)/audience")
        let select = entries(&inner, "select", at: "\(pointer)/audience", required: true) ?? []
        func operation(_ name: String, _ reader: inout TableFileReader) -> [AudienceEntry] {
            guard let list = reader.entries(&inner, name, at: "\(pointer)/audience") else { return select }
            for (index, entry) in list.enumerated() where !select.contains(entry) {
                reader.reject(
                    "\(pointer)/audience/\(name)/\(index)",
                    "\(entry.template) is not among those of select: who may not read a row must not hear of it")
            }
            return list
        }
        let audience = TableDeclaration.Audience(
            select: select, insert: operation("insert", &self), update: operation("update", &self),
            delete: operation("delete", &self))
        close(&inner)
        return audience
    }

    /// Templates as texts, or as objects with the state that the row must be in.
    private mutating func entries(
        _ fields: inout Fields, _ name: String, at pointer: String, required: Bool = false
    ) -> [AudienceEntry]? {
        guard let values = array(&fields, name, countMax: TableLimits.templatesMax, required: required) else {
            return nil
        }
        var entries: [AudienceEntry] = []
        for (index, value) in values.enumerated() {
            let place = "\(pointer)/\(name)/\(index)"
            switch value {
            case .string(let text):
                if let template = template(text, at: place) { entries.append(.init(template: template, when: .init())) }
            case .object(let members):
                var entry = Fields(members, at: place)
                let text = entry.string("template", bytesMax: TableLimits.templateBytesMax)
                let when = condition(&entry, at: place)
                if !text.isEmpty, let template = template(text, at: "\(place)/template") {
                    entries.append(.init(template: template, when: when))
                }
                close(&entry)
            default: reject(place, "must be a template such as user:{user_id}, not \(value.typeName)")
            }
        }
        return entries
    }

    private mutating func template(_ text: String, at place: String) -> AudienceTemplate? {
        guard text.utf8.count <= TableLimits.templateBytesMax else {
            reject(place, "must have at most \(TableLimits.templateBytesMax) bytes, and has \(text.utf8.count)")
            return nil
        }
        do {
            let template = try AudienceTemplate(text)
            guard template.leadingConstant != nil else {
                reject(place, "must begin with a constant, as user:{user_id} does: \(text) could make any key")
                return nil
            }
            return template
        } catch {
            reject(place, error.reason)
            return nil
        }
    }

    private mutating func groups(_ fields: inout Fields, at pointer: String) -> [InvalidationGroup] {
        objects(&fields, "invalidates", at: pointer, countMax: TableLimits.groupsMax).map { item in
            var group = Fields(item.members, at: item.pointer)
            let operations = operations(&group, at: item.pointer)
            let columns = names(&group, "columns", countMax: TableLimits.columnsMax)
            if !columns.isEmpty, !operations.contains(.update) {
                group.reject("columns", "can only change in an update, which after does not name")
            }
            let keys = queryKeys(&group, at: item.pointer)
            let audience = entries(&group, "audience", at: item.pointer)
            close(&group)
            return InvalidationGroup(operations: operations, columns: columns, keys: keys, audience: audience)
        }
    }

    private mutating func operations(_ fields: inout Fields, at pointer: String) -> Set<RowOperation> {
        guard let values = array(&fields, "after", countMax: RowOperation.allCases.count) else {
            return Set(RowOperation.allCases)
        }
        var operations: Set<RowOperation> = []
        for (index, value) in values.enumerated() {
            guard case .string(let text) = value, let operation = RowOperation(rawValue: text) else {
                let words = RowOperation.allCases.map(\.rawValue).joined(separator: ", ")
                reject("\(pointer)/after/\(index)", "must be one of \(words)")
                continue
            }
            operations.insert(operation)
        }
        return operations
    }

    private mutating func queryKeys(_ fields: inout Fields, at pointer: String) -> [QueryKeyTemplate] {
        let values = array(&fields, "keys", countMax: TableLimits.keysPerGroupMax, required: true) ?? []
        var keys: [QueryKeyTemplate] = []
        for (index, value) in values.enumerated() {
            let place = "\(pointer)/keys/\(index)"
            guard case .array(let parts) = value, (1...TableLimits.keyPartsMax).contains(parts.count) else {
                reject(
                    place,
                    "must be an array of 1 to \(TableLimits.keyPartsMax) texts, such as [leaderboard, \"{class_id}\"]")
                continue
            }
            keys.append(
                QueryKeyTemplate(
                    parts: parts.enumerated().compactMap { keyPart($0.element, at: "\(place)/\($0.offset)") }))
        }
        return keys
    }

    private mutating func keyPart(_ value: JSONValue, at place: String) -> QueryKeyTemplate.Part? {
        guard case .string(let text) = value, !text.isEmpty, text.utf8.count <= TableLimits.keyPartBytesMax else {
            reject(place, "must be a text of 1 to \(TableLimits.keyPartBytesMax) bytes")
            return nil
        }
        if text.hasPrefix("{"), text.hasSuffix("}"), text.utf8.count > 2 {
            let column = String(text.dropFirst().dropLast())
            return checkName(column, at: place) ? .column(column) : nil
        }
        guard !text.contains("{"), !text.contains("}"), text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            reject(place, "'\(text)' is neither a constant nor one {column}")
            return nil
        }
        return .constant(text)
    }

    private mutating func counts(_ fields: inout Fields, at pointer: String) -> [String: String] {
        guard let members = object(&fields, "counts") else { return [:] }
        let place = "\(pointer)/counts"
        if members.count > TableLimits.countsMax { reject(place, "must have at most \(TableLimits.countsMax) members") }
        var inner = Fields(members, at: place)
        var counts: [String: String] = [:]
        for count in members.keys.sorted() {
            checkName(count, at: "\(place)/\(count)")
            counts[count] = name(&inner, count)
        }
        close(&inner)
        return counts
    }

    private mutating func memberships(_ fields: inout Fields, at pointer: String) -> [MembershipDeclaration] {
        let items = objects(&fields, "memberships", at: pointer, countMax: TableLimits.membershipsPerTableMax)
        return items.compactMap { item in
            var inner = Fields(item.members, at: item.pointer)
            let name = name(&inner, "name")
            let subject = membershipTemplate(&inner, "subject", at: item.pointer)
            let grants = membershipTemplate(&inner, "grants", at: item.pointer)
            let role = inner.has("role") ? inner.string("role", bytesMax: TableLimits.nameBytesMax) : nil
            let when = condition(&inner, at: item.pointer)
            close(&inner)
            guard let subject, let grants else { return nil }
            if ["user", "tenant", "everyone"].contains(grants.leadingConstant) {
                reject(
                    "\(item.pointer)/grants",
                    "\(grants) is given by the token alone: no row may make a caller somebody else")
            }
            return MembershipDeclaration(name: name, subject: subject, grants: grants, role: role, when: when)
        }
    }

    private mutating func membershipTemplate(
        _ fields: inout Fields, _ name: String, at pointer: String
    ) -> AudienceTemplate? {
        let text = fields.string(name, bytesMax: TableLimits.templateBytesMax)
        guard !text.isEmpty, let template = template(text, at: "\(pointer)/\(name)") else { return nil }
        guard template.columns.count == 1 else {
            reject("\(pointer)/\(name)", "\(text) must have exactly one column: a membership ties one id to another")
            return nil
        }
        return template
    }

    private mutating func condition(_ fields: inout Fields, at pointer: String) -> RowCondition {
        guard let members = object(&fields, "when") else { return RowCondition() }
        let place = "\(pointer)/when"
        if members.count > TableLimits.conditionColumnsMax {
            reject(place, "must have at most \(TableLimits.conditionColumnsMax) members")
        }
        var allowed: [String: [JSONValue]] = [:]
        for (column, value) in members.sorted(by: { $0.key < $1.key }) {
            checkName(column, at: "\(place)/\(column)")
            let values = if case .array(let list) = value { list } else { [value] }
            guard (1...TableLimits.conditionValuesMax).contains(values.count) else {
                reject("\(place)/\(column)", "must list 1 to \(TableLimits.conditionValuesMax) values")
                continue
            }
            for value in values {
                switch value {
                case .array, .object:
                    reject("\(place)/\(column)", "must be compared with texts, numbers, booleans or null")
                default: continue
                }
            }
            allowed[column] = values
        }
        return RowCondition(allowed)
    }

    // MARK: Values

    /// Adds the mistakes that the reader of an object found.
    mutating func close(_ fields: inout Fields) {
        do throws(Failure) {
            try fields.finish()
        } catch {
            mistakes += error.fields
        }
    }

    private mutating func object(_ fields: inout Fields, _ name: String, required: Bool = false) -> [String: JSONValue]?
    {
        if required, fields.value(name) == nil {
            fields.reject(name, "is missing")
            return nil
        }
        return fields.openObject(name)
    }

    private mutating func array(
        _ fields: inout Fields, _ name: String, countMax: Int, required: Bool = false
    ) -> [JSONValue]? {
        guard let value = fields.value(name) else {
            if required || fields.has(name) { fields.reject(name, "is missing") }
            return nil
        }
        guard case .array(let values) = value else {
            fields.reject(name, "must be an array, not \(value.typeName)")
            return nil
        }
        guard (1...countMax).contains(values.count) else {
            fields.reject(name, "must have 1 to \(countMax) elements, and has \(values.count)")
            return nil
        }
        return values
    }

    private mutating func objects(
        _ fields: inout Fields, _ name: String, at pointer: String, countMax: Int, required: Bool = false
    ) -> [(members: [String: JSONValue], pointer: String)] {
        var objects: [(members: [String: JSONValue], pointer: String)] = []
        for (index, value) in (array(&fields, name, countMax: countMax, required: required) ?? []).enumerated() {
            let place = "\(pointer)/\(name)/\(index)"
            if case .object(let members) = value {
                objects.append((members, place))
            } else {
                reject(place, "must be an object, not \(value.typeName)")
            }
        }
        return objects
    }

    private mutating func names(
        _ fields: inout Fields, _ name: String, countMax: Int, required: Bool = false
    ) -> [String] {
        var names: [String] = []
        for (index, value) in (array(&fields, name, countMax: countMax, required: required) ?? []).enumerated() {
            guard case .string(let text) = value, Self.isName(text) else {
                fields.reject("\(name)/\(index)", Self.nameRule)
                continue
            }
            if names.contains(text) { fields.reject("\(name)/\(index)", "stands twice") }
            names.append(text)
        }
        return names
    }

    private mutating func name(_ fields: inout Fields, _ name: String) -> String {
        let text = fields.string(name, bytesMax: 256)
        if !text.isEmpty, !Self.isName(text) { fields.reject(name, Self.nameRule) }
        return text
    }

    @discardableResult private mutating func checkName(_ text: String, at place: String) -> Bool {
        if Self.isName(text) { return true }
        reject(place, Self.nameRule)
        return false
    }

    static let nameRule =
        "must be a name of 1 to \(TableLimits.nameBytesMax) letters, digits and _, which does not begin with a digit"

    static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(48...57).contains(first), text.utf8.count <= TableLimits.nameBytesMax
        else {
            return false
        }
        return text.utf8.allSatisfy {
            (97...122).contains($0) || (65...90).contains($0) || (48...57).contains($0) || $0 == UInt8(ascii: "_")
        }
    }
}

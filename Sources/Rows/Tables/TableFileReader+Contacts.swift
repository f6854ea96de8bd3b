import Values
import Visibility

/// The member `contacts` of a file of tables: who may contact whom.
extension TableFileReader {
    /// The rule of one kind as the file writes it. Whether its templates can be keys is known once all tables are read.
    struct ContactDraft {
        typealias Entry = (template: AudienceTemplate, pointer: String)

        let kind: ContactKind
        var any: [Entry] = []
        var not: [Entry] = []
    }

    /// Returns the rules, after checking that each template can be a key of the users whom it is about.
    mutating func contacts(
        _ drafts: [ContactDraft], _ tables: [TableDeclaration], _ topics: [TopicDeclaration], reserved: ReservedNames
    ) -> ContactPolicy {
        let memberships = tables.flatMap(\.memberships)
        let givers = ContactKeys(memberships: memberships, claims: reserved.claims)
        var rules: [ContactKind: ContactPolicy.Rule] = [:]
        for draft in drafts {
            rules[draft.kind] = ContactPolicy.Rule(
                any: draft.any.compactMap { condition($0, givers, isDenial: false) },
                not: draft.not.compactMap { condition($0, givers, isDenial: true) })
        }
        return ContactPolicy(rules: rules, hiddenShapes: hiddenShapes(of: rules, tables, topics, reserved))
    }

    /// Returns the shapes of the keys that forbid a contact and have no other meaning.
    private func hiddenShapes(
        of rules: [ContactKind: ContactPolicy.Rule], _ tables: [TableDeclaration], _ topics: [TopicDeclaration],
        _ reserved: ReservedNames
    ) -> Set<String> {
        var others = reserved.templates + reserved.claims + topics.flatMap(\.audience)
        for table in tables {
            others += table.audience.select.map(\.template) + table.memberships.map(\.subject)
            others += table.invalidates.flatMap { $0.audience ?? [] }.map(\.template)
        }
        var (denied, shown): (Set<String>, Set<String>) = ([], Set(others.map(\.shape)))
        for rule in rules.values {
            for condition in rule.any + rule.not {
                switch condition {
                case .key(let key) where rule.not.contains(condition): denied.insert(key.shape)
                case .key(let key), .sharedKey(let key): shown.insert(key.shape)
                case .everyone: break
                }
            }
        }
        return denied.subtracting(shown)
    }

    private mutating func condition(
        _ entry: ContactDraft.Entry, _ givers: ContactKeys, isDenial: Bool
    ) -> ContactPolicy.Condition? {
        let (template, pointer) = entry
        if template.description == "everyone" { return .everyone }
        let shape = template.shape
        guard shape != MembershipDeclaration.userShape else {
            reject(pointer, "\(template) is a key of one user alone, which no two users share")
            return nil
        }
        guard givers.shapes.contains(shape) else {
            let hint = givers.suggestion(for: template).map { "; did you mean \($0)?" } ?? ""
            reject(pointer, "\(template) is no key that a membership or a token gives\(hint)")
            return nil
        }
        if template.columns == [ContactKeys.addressed] { return .key(ContactPolicy.Key(template)) }
        // A misspelt {user} would mean an id that both share: a block would then forbid nothing.
        if isDenial || template.columns[0].lowercased().hasPrefix("us") {
            reject(pointer, "\(template) must name the addressed user: write {\(ContactKeys.addressed)}")
        } else if !givers.areOpen(to: shape) {
            reject(
                pointer,
                "\(template) cannot be known of the addressed user without a token: no membership without a role "
                    + "leads to it from user:{…}. For a key of the caller alone, write {\(ContactKeys.addressed)}")
        }
        return .sharedKey(ContactPolicy.Key(template))
    }
}

/// The keys that the rules of contacts can name.
private struct ContactKeys {
    /// The column that stands for the id of the addressed user.
    static let addressed = "user"

    let memberships: [MembershipDeclaration]
    let claims: [AudienceTemplate]

    /// The shapes of all keys that callers can have.
    var shapes: Set<String> { Set((memberships.map(\.grants) + claims).map(\.shape)) }

    /// Whether memberships without a role lead from a user's id to a key.
    func areOpen(to shape: String, passed: Set<String> = []) -> Bool {
        // The memberships may have a circle, which is another mistake.
        guard !passed.contains(shape) else { return false }
        guard shape != MembershipDeclaration.userShape else { return true }
        return memberships.contains { membership in
            membership.grants.shape == shape && membership.role == nil
                && areOpen(to: membership.subject.shape, passed: passed.union([shape]))
        }
    }

    /// Returns the template with the closest spelling, with the same column.
    func suggestion(for template: AudienceTemplate) -> String? {
        let column = template.columns == [Self.addressed] ? Self.addressed : "id"
        let known = shapes.sorted().map { $0.split(separator: "{}", omittingEmptySubsequences: false) }
        return known.map { $0.joined(separator: "{\(column)}") }.closest(to: template.description)
    }
}

// MARK: - Members

extension Fields {
    /// Reads the rules of all kinds that the file names. A null is not a rule: it must not open what a rule would close.
    mutating func contacts() -> [TableFileReader.ContactDraft] {
        ContactKind.allCases.compactMap { kind in
            guard has(kind.rawValue) else { return nil }
            switch value(kind.rawValue) {
            case .object(let members)?: return rule(of: kind, members)
            case .array(let list)? where list.isEmpty: return TableFileReader.ContactDraft(kind: kind)
            default:
                reject(kind.rawValue, "must be {any: […], not: […]}, or [] for backends only")
                return nil
            }
        }
    }

    private mutating func rule(
        of kind: ContactKind, _ members: [String: JSONValue]
    ) -> TableFileReader.ContactDraft {
        let pointer = "/contacts/\(kind.rawValue)"
        return nested(members, at: kind.rawValue) { fields in
            var draft = TableFileReader.ContactDraft(kind: kind)
            draft.any = fields.relations("any", at: pointer)
            if fields.has("not") { draft.not = fields.relations("not", at: pointer) }
            if let index = draft.any.firstIndex(where: { $0.template.description == "everyone" }), draft.any.count > 1 {
                fields.reject("any/\(index)", "everyone must be the only entry, because it includes all others")
            }
            if let index = draft.not.firstIndex(where: { $0.template.description == "everyone" }) {
                fields.reject("not/\(index)", "everyone would leave backends only: write \(kind.rawValue): []")
            }
            return draft
        }
    }

    private mutating func relations(_ name: String, at pointer: String) -> [TableFileReader.ContactDraft.Entry] {
        guard case .array(let values)? = value(name), values.count <= TableLimits.templatesMax else {
            reject(name, "must be a list of at most \(TableLimits.templatesMax) templates, such as friend-of:{user}")
            return []
        }
        return values.enumerated().compactMap { index, value in
            let place = "\(name)/\(index)"
            guard case .string(let text) = value else {
                reject(place, "must be a template such as friend-of:{user}, not \(value.typeName)")
                return nil
            }
            guard let template = template(text, at: place) else { return nil }
            if template.columns.count == 1 || text == "everyone" { return (template, "\(pointer)/\(place)") }
            reject(
                place,
                "must have one column: {\(ContactKeys.addressed)} for the addressed user, or in any a name such as {id} for an "
                    + "id that both users share")
            return nil
        }
    }
}

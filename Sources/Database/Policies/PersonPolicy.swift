/// How a person leaves a table: which rows belong to a person, and what an erasure leaves of them.
///
/// Every table declares it beside its visibility. An erasure and an export follow the declarations, so a table without
/// one would keep a person for ever.
public struct PersonPolicy: Sendable {
    /// The columns, after the tenant, that identify a row in the order of an index. A scan continues after a key.
    public let key: [String]
    public let links: [PersonLink]
    /// A column with JSON in which rows of other users may name a person. Such rows are deleted.
    public let content: String?
    /// Columns that an export leaves out: secrets, and forms of secrets.
    public let hidden: Set<String>
    /// Text columns that hold JSON.
    public let json: Set<String>
    /// Whether an export contains the rows.
    public let isExported: Bool
    /// Text columns of rows that stay, which hold nothing about a person.
    public let impersonal: Set<String>
    /// The reason why no row belongs to a person, or the part of the service that erases the rows.
    public let why: StaticString?

    private init(
        key: [String] = [], links: [PersonLink] = [], columns: [PersonColumns] = [], isExported: Bool,
        why: StaticString? = nil
    ) {
        var (content, hidden, json, impersonal) = (String?.none, Set<String>(), Set<String>(), Set<String>())
        for kind in columns {
            switch kind {
            case .content(let name): (content, json) = (name, json.union([name]))
            case .hidden(let names): hidden.formUnion(names)
            case .json(let names): json.formUnion(names)
            case .impersonal(let names): impersonal.formUnion(names)
            }
        }
        let names = key + links.map(\.column) + links.flatMap(\.changes).map(\.column) + hidden + json + impersonal
        for name in names { precondition(isSQLIdentifier(name), "a column cannot be named \(name)") }
        (self.key, self.links, self.content, self.hidden) = (key, links, content, hidden)
        (self.json, self.isExported, self.impersonal, self.why) = (json, isExported, impersonal, why)
    }

    /// No row holds anything about a person.
    public static func nothing(_ why: StaticString) -> PersonPolicy { PersonPolicy(isExported: false, why: why) }

    /// The rows repeat parts of other rows. A step of the service erases them, and an export leaves them out.
    public static func copies(_ how: StaticString) -> PersonPolicy { PersonPolicy(isExported: false, why: how) }

    /// Rows belong to the person that a column names.
    ///
    /// - Parameters:
    ///   - key: see ``key``
    ///   - columns: What the other columns hold, where it matters.
    public static func rows(
        by key: [String], _ links: [PersonLink], _ columns: PersonColumns..., isExported: Bool = true
    ) -> PersonPolicy {
        precondition(!key.isEmpty && !links.isEmpty, "rows of a person need a key and a column")
        return PersonPolicy(key: key, links: links, columns: columns, isExported: isExported)
    }

    /// Returns one line for `bellhop policies`.
    public var summary: String {
        if let why { return links.isEmpty ? "nothing: \(why)" : "\(why)" }
        let texts = links.map { "\($0.column): \($0.end.summary)" }
        return (texts + [content.map { "\($0): rows that name the person are deleted" }].compactMap(\.self))
            .joined(separator: ", ")
    }
}

/// Columns that an erasure or an export treats in their own way.
public enum PersonColumns: Sendable {
    /// See ``PersonPolicy/content``.
    case content(String)
    /// See ``PersonPolicy/hidden``.
    case hidden([String])
    /// See ``PersonPolicy/json``.
    case json([String])
    /// See ``PersonPolicy/impersonal``.
    case impersonal([String])
}

/// A column that names a person, and what becomes of the rows with that person.
public struct PersonLink: Sendable {
    public enum End: Sendable {
        case deleted
        case changed([PersonChange])
        /// A step of the table's feature erases the rows, because rows of other users depend on them.
        case step
    }

    public let column: String
    public let end: End
    /// A further condition on the rows; nil for all.
    public let condition: StaticString?
    /// Whether one statement can find and change the person's rows: an index begins with the column, and a limit bounds
    /// their number. Otherwise the table is scanned in the order of its key.
    public let isBounded: Bool

    private init(_ column: String, _ end: End, where condition: StaticString?, isBounded: Bool) {
        (self.column, self.end, self.condition, self.isBounded) = (column, end, condition, isBounded)
    }

    public static func deleted(_ column: String, where condition: StaticString? = nil) -> PersonLink {
        PersonLink(column, .deleted, where: condition, isBounded: true)
    }

    public static func deletedByScan(_ column: String) -> PersonLink {
        PersonLink(column, .deleted, where: nil, isBounded: false)
    }

    public static func changed(
        _ column: String, where condition: StaticString? = nil, _ changes: PersonChange...
    ) -> PersonLink {
        PersonLink(column, .changed(changes), where: condition, isBounded: true)
    }

    public static func changedByScan(_ column: String, _ changes: PersonChange...) -> PersonLink {
        PersonLink(column, .changed(changes), where: nil, isBounded: false)
    }

    /// - Parameter isBounded: whether an index begins with the column
    public static func step(_ column: String, isBounded: Bool = true) -> PersonLink {
        PersonLink(column, .step, where: nil, isBounded: isBounded)
    }

    public var changes: [PersonChange] { if case .changed(let changes) = end { changes } else { [] } }
    public var isStep: Bool { if case .step = end { true } else { false } }
}

/// A new value of a column in a row that stays.
public enum PersonChange: Sendable {
    case null(String)
    case empty(String)
    /// The id of erased persons.
    case pseudonym(String)
    /// One more, for a version.
    case next(String)

    public var column: String {
        switch self {
        case .null(let column), .empty(let column), .pseudonym(let column), .next(let column): column
        }
    }
}

extension PersonLink.End {
    var summary: String {
        switch self {
        case .deleted: "deleted"
        case .step: "deleted by its feature"
        case .changed(let changes):
            changes.map { change in
                switch change {
                case .null(let column), .empty(let column): "\(column) cleared"
                case .pseudonym(let column): "\(column) replaced"
                case .next(let column): "\(column) raised"
                }
            }.joined(separator: ", ")
        }
    }
}

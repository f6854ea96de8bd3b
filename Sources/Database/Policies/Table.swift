import Visibility

/// A table whose rows have an audience, with the policies for reading and writing them.
public struct Table: Sendable {
    public static let tenantColumnDefault = "tenant"

    public let name: String
    public let tenantColumn: String
    public let read: Policy
    public let write: Policy
    /// The columns that name the users to whom a row belongs: those of `user:{column}` in the write policy.
    let userColumns: [String]
    /// How a person leaves the table. The service does not start without it.
    public let person: PersonPolicy?
    /// How long its rows are kept, for `bellhop policies`; nil if nothing deletes them because of their age.
    public let kept: String?
    /// Whether it stores what callers send about their own rows. No write policy opens it, and yet its rows count as the
    /// tenant's.
    public let storesSentRows: Bool

    /// Creates a table.
    ///
    /// - Parameter name: Lower-case letters, digits and `_`, because SQL uses the name without quotes.
    public init(
        _ name: String, tenantColumn: String = Table.tenantColumnDefault, read: Policy, write: Policy,
        kept: String? = nil, storesSentRows: Bool = false, person: PersonPolicy? = nil
    ) {
        precondition(isSQLIdentifier(name), "a table cannot be named \(name)")
        for column in [tenantColumn] + (read.entries + write.entries).flatMap(\.columns) {
            precondition(isSQLIdentifier(column), "a column cannot be named \(column)")
        }
        self.name = name
        self.tenantColumn = tenantColumn
        self.read = read
        self.write = write
        (self.kept, self.storesSentRows, self.person) = (kept, storesSentRows, person)
        userColumns = write.templates.filter(\.namesUser).flatMap(\.columns)
    }

    /// Whether its rows belong to users, and a scope with one of the keys may read rows of all of them.
    public func opensOthers(to keys: some Sequence<String>) -> Bool {
        let shared = read.templates.filter { !$0.namesUser }
        return (read.templates + write.templates).contains(where: \.namesUser)
            && keys.contains { key in shared.contains { $0.columnValues(of: key) != nil } }
    }
}

/// The reason why a statement names a table without a scope.
///
/// Each use bypasses the rule of visibility; `grep 'unscoped:'` lists them all.
public struct Unscoped: Sendable {
    public let why: StaticString

    /// Returns the reason for a reaction, which writes, on behalf of the service, a row that the caller itself could
    /// not write. An example is a customer's notification in the transaction of the confirming barber.
    public static func reaction(_ why: StaticString) -> Unscoped { Unscoped(why: why) }
    /// Returns the reason for the service's own records: event log, counters, idempotency keys.
    public static func bookkeeping(_ why: StaticString) -> Unscoped { Unscoped(why: why) }
    /// Returns the reason for a check over all rows, such as the recount of badges.
    public static func audit(_ why: StaticString) -> Unscoped { Unscoped(why: why) }
}

/// Whether a name can be used in SQL without quotes, and means the same in SQLite and PostgreSQL.
func isSQLIdentifier(_ name: String) -> Bool {
    guard let first = name.utf8.first, first == UInt8(ascii: "_") || (97...122).contains(first) else { return false }
    return name.utf8.allSatisfy { byte in
        (97...122).contains(byte) || (48...57).contains(byte) || byte == UInt8(ascii: "_")
    }
}

extension AudienceTemplate {
    /// Whether its keys belong to one user each, whom a column names: `user:{column}`.
    fileprivate var namesUser: Bool { segments.first == .constant("user") && segments.count == 2 && columns.count == 1 }
}

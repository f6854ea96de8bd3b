import Visibility

/// A table whose rows have an audience, with the policies for reading and writing them.
public struct Table: Sendable {
    public static let tenantColumnDefault = "tenant"

    public let name: String
    public let tenantColumn: String
    public let read: Policy
    public let write: Policy
    /// The columns that name the owners of a row: each `user:{column}` of the write policy.
    let userColumns: [String]
    /// The column that names the owner of a row, for ``SQL``'s `of`; nil if there is no column, or several.
    let userColumn: String?
    /// Subqueries of the rows of a tenant, and of a user.
    let ofTenant: String
    let ofUser: String?
    /// Whether the rows name their tenants.
    let hasTenants: Bool
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
        self.init(
            name, tenantColumn: tenantColumn, read: read, write: write, kept: kept, storesSentRows: storesSentRows,
            person: person, hasTenants: true)
    }

    fileprivate init(
        _ name: String, tenantColumn: String, read: Policy, write: Policy, kept: String?, storesSentRows: Bool,
        person: PersonPolicy?, hasTenants: Bool
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
        self.hasTenants = hasTenants
        userColumns = write.templates.filter(\.namesUser).flatMap(\.columns)
        userColumn = Self.userColumn(write: userColumns, read: read, person: person)
        ofTenant = "(SELECT * FROM \(name) WHERE \(tenantColumn) = ?)"
        ofUser = userColumn.map { "(SELECT * FROM \(name) WHERE \(tenantColumn) = ? AND \($0) = ?)" }
    }

    /// Returns the column that names the owner of a row. The write policy decides; without a user there, the read
    /// policy; without one there, the column of the person whose erasure includes the row.
    private static func userColumn(write: [String], read: Policy, person: PersonPolicy?) -> String? {
        let candidates = [
            write, read.templates.filter(\.namesUser).flatMap(\.columns),
            person?.links.filter { $0.condition == nil }.map(\.column) ?? [],
        ]
        guard let first = candidates.map({ Set($0) }).first(where: { !$0.isEmpty }), first.count == 1 else {
            return nil
        }
        return first.first
    }

    /// Whether its rows belong to users, and a scope with one of the keys may read rows of all of them.
    public func opensOthers(to keys: some Sequence<String>) -> Bool {
        let shared = read.templates.filter { !$0.namesUser }
        return (read.templates + write.templates).contains(where: \.namesUser)
            && keys.contains { key in shared.contains { $0.columnValues(of: key) != nil } }
    }
}

/// A table whose rows name no tenant: secrets and clocks of the service, and parts to which only a row of another table
/// leads. No caller reads or writes it.
public struct ServiceTable: Sendable {
    public let table: Table

    public init(_ name: String, kept: String? = nil, person: PersonPolicy? = nil) {
        table = Table(
            name, tenantColumn: Table.tenantColumnDefault, read: [], write: [], kept: kept, storesSentRows: false,
            person: person, hasTenants: false)
    }
}

/// The reason why a statement names a table without a caller's scope.
///
/// Each use bypasses the rule of visibility: inside one tenant (`within:`), or for all of them (`unscoped:`). `grep`
/// lists them all.
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
    /// Whether each of its keys belongs to one user, which a column names: `user:{column}`.
    fileprivate var namesUser: Bool { segments.first == .constant("user") && segments.count == 2 && columns.count == 1 }
}

import BellhopClient
import Database
import TestSupport
import Testing

@testable import Service

/// A service whose file of tables has friends, classes and blocks, and rules of contacts.
struct ContactTown {
    static let tables = """
        tables:
          - table: friends
            primaryKey: [id]
            tenant: {column: tenant}
            audience: {select: ["user:{user_id}"]}
            memberships:
              - {name: friend, subject: "user:{user_id}", grants: "friend-of:{friend_id}"}
          - table: classmates
            primaryKey: [id]
            tenant: {column: tenant}
            audience: {select: ["user:{user_id}"]}
            memberships:
              - {name: classmate, subject: "user:{user_id}", grants: "class:{class_id}:member"}
          - table: blocks
            primaryKey: [id]
            tenant: {column: tenant}
            audience: {select: ["user:{blocker_id}"]}
            memberships:
              - {name: blocked, subject: "user:{blocked_id}", grants: "blocked-by:{blocker_id}"}
              - {name: blocking, subject: "user:{blocker_id}", grants: "blocks:{blocked_id}"}
        """

    private static let directory = Result { try TemporaryDirectory() }

    let service: TestService
    let feed: FeedProbe

    /// - Parameter contacts: The value of the member `contacts`; nil for a file without it.
    static func settings(_ contacts: String?, _ overrides: [String: String] = [:]) throws -> [String: String] {
        let rules = contacts.map { "contacts: \($0)\n" } ?? ""
        let file = try directory.get().write(
            "version: 1\n\(rules)\(tables)", to: "contacts-\(String(rules.hashValue, radix: 36)).yaml")
        return ["changesSecret": FeedProbe.secret, "tables": file].merging(overrides) { $1 }
    }

    init(_ contacts: String?, _ overrides: [String: String] = [:]) throws {
        self.init(try TestService.start(Self.settings(contacts, overrides), at: TestService.morning))
    }

    init(_ service: TestService) {
        (self.service, feed) = (service, FeedProbe(service))
    }

    /// Returns the row of a relation of two users, or of a user with a class.
    static func row(_ table: String, _ user: String, _ other: String, in tenant: String = "default") -> JSON {
        let columns =
            switch table {
            case "friends": ("user_id", "friend_id")
            case "classmates": ("user_id", "class_id")
            default: ("blocker_id", "blocked_id")
            }
        return [
            "id": .string("\(tenant):\(user):\(other)"), "tenant": .string(tenant), columns.0: .string(user),
            columns.1: .string(other),
        ]
    }

    func add(_ table: String, _ user: String, _ other: String, in tenant: String = "default") async throws {
        let row = Self.row(table, user, other, in: tenant)
        #expect(try await feed.send(School.insert(table, row)).counts == [202, 1, 0, 0])
    }

    func remove(_ table: String, _ user: String, _ other: String) async throws {
        #expect(try await feed.send(School.delete(table, Self.row(table, user, other))).counts == [202, 1, 0, 0])
    }

    /// Returns the direct conversation of two users, which a backend creates.
    func direct(_ user: String, _ other: String) async throws -> String {
        let backend = service.client(as: .service())
        return try await backend.createConversation(.init(kind: .direct, memberIds: [user, other])).value.id
    }

    func say(_ text: String, in id: String, as user: String, _ headers: [String: String] = [:]) async throws
        -> ServiceAnswer
    {
        try await service.call(
            "POST", "/v1/conversations/\(id)/messages", as: .user(user), ["text": .string(text)], headers: headers)
    }

    /// Returns the number of rows of each table, and the last numbers of the conversations and of the log.
    func footprint() throws -> [String: Int] {
        try service.app.store.read { db in
            var counts = ["the log": Int(try EventLog.newestSequence(in: db))]
            for table in Catalog.tables {
                counts[table.name] = try db.integer("SELECT count(*) FROM \(table, unscoped: .audit("a test"))")
            }
            counts["messages"] = try db.integer(
                """
                SELECT coalesce(sum(last_sequence), 0)
                FROM \(ConversationsFeature.conversations, unscoped: .audit("a test"))
                """)
            return counts
        }
    }
}

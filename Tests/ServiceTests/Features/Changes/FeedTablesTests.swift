import BellhopClient
import Foundation
import Rows
import TestSupport
import Testing

@testable import Service

/// `bellhop policies --tables`: checks a table file as the start does, and reports every mistake with its line.
@Suite(.timed) struct FeedTablesTests {
    private static func page(of text: String) throws -> TablesPage {
        let directory = try TemporaryDirectory()
        return try TablesPage(named: directory.write(text, to: "tables.yaml"))
    }

    private static func mistakes(of text: String) throws -> TablesPage.Mistakes {
        do {
            _ = try page(of: text)
        } catch let mistakes as TablesPage.Mistakes {
            return mistakes
        }
        Issue.record("no mistake was found")
        return TablesPage.Mistakes(list: [], detail: "")
    }

    @Test func shippedFiles_areGood() throws {
        let school = try TablesPage(named: "school")
        #expect(
            school.tables.map(\.qualifiedName).sorted()
                == [
                    "attendance", "classes", "homework", "parent_students", "profiles", "sessions",
                    "student_achievements", "student_stickers", "student_trophies", "students", "teachers",
                ].map { "public.\($0)" })
    }

    @Test func shippedFiles_areShown_asTheyAreMeant() throws {
        let school = try Self.shown("school")
        let links = try #require(school.array?.first { $0["table"].string == "public.parent_students" })
        #expect(links["tenant"].string == "{school_id}, else the tenant of students by {student_id}")
        #expect(links["memberships"].array?.map { $0["grants"].string } == ["student:{student_id}:parent"])
        let posts = try Self.shown("posts")[0]
        #expect(posts["audience"].array?.map { $0["when"].string } == ["visibility is public", nil])
        #expect(posts["counts"] == ["likeCount: like_count", "repostCount: repost_count"])
        let todos = try Self.shown("todo")[0]
        #expect(todos["audience"][0]["template"].string == "user:{user_id}")
        #expect(todos["audience"][0]["hears"] == ["insert", "update", "delete"])
        #expect(todos["invalidates"].array?.map { $0["keys"] } == [["todos"]])
        let (status, text) = try BellhopProcess(["policies", "--tables", "school"]).finish()
        #expect(status == 0)
        #expect(text.contains("READERS OF"))
        #expect(text.contains("{school_id}, else the tenant of students by {student_id}"))
    }

    @Test func topicsOfTheApp_areShownToo() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            """
            version: 1
            topics:
              - pattern: order:{id}
                audience: ["order:{id}", "tenant:admin"]
            tables:
              - table: orders
                primaryKey: [id]
                tenant: {constant: default}
                audience: {select: ["user:{user_id}"]}
                memberships:
                  - {name: customer, subject: "user:{user_id}", grants: "order:{id}"}
            """, to: "tables.yaml")
        let (status, text) = try BellhopProcess(["policies", "--tables", file]).finish()
        #expect(status == 0, "\(text)")
        let lines = text.split(separator: "\n")
        #expect(lines.contains { $0.hasPrefix("TOPIC") && $0.hasSuffix("WHO MAY SUBSCRIBE") }, "\(text)")
        #expect(lines.contains { $0.hasPrefix("order:{id}") && $0.hasSuffix("order:{id}, tenant:admin") }, "\(text)")
    }

    @Test func rulesOfContacts_areShownToo() throws {
        let file = repository.appendingPathComponent("Deploy/tables/messaging.yaml").path
        let (status, text) = try BellhopProcess(["policies", "--tables", file]).finish()
        #expect(status == 0, "\(text)")
        let lines = text.split(separator: "\n").map { $0.split(separator: " ", omittingEmptySubsequences: true) }
        #expect(lines.contains(["CONTACT", "WHO", "MAY", "WHO", "MAY", "NOT"]), "\(text)")
        #expect(lines.contains(["follows", "everyone", "blocked-by:{user}"]), "\(text)")
        let row: [Substring] = [
            "conversations", "friend-of:{user},", "team:{id}:member", "blocked-by:{user},", "blocks:{user}",
        ]
        #expect(lines.contains(row), "\(text)")
        let found = try Self.mistakes(
            of: """
                version: 1
                contacts:
                  conversations:
                    any: ["freind-of:{user}"]
                tables:
                  - table: friends
                    primaryKey: [id]
                    tenant: {constant: default}
                    audience: {select: ["user:{user_id}"]}
                    memberships:
                      - {name: friend, subject: "user:{user_id}", grants: "friend-of:{friend_id}"}
                """)
        #expect(found.list.map(\.line) == [4])
        #expect(found.list.map(\.pointer) == ["/contacts/conversations/any/0"])
        #expect(found.list.first?.detail.hasSuffix("did you mean friend-of:{user}?") == true, "\(found)")
    }

    private static func shown(_ name: String) throws -> JSON {
        try JSON(parsing: BellhopProcess(["policies", "--tables", name, "--json"]).finish().text)
    }

    @Test func mistakes_areReported_withTheirLines() throws {
        let found = try Self.mistakes(
            of: """
                version: 1
                tables:
                  - table: posts
                    primaryKey: [id]
                    tenant: {colum: school_id}
                    audience:
                      select: ["{user_id}", "user:{user_id}"]
                      delete:
                        - everyone
                """)
        #expect(found.list.map(\.line) == [5, 5, 7, 9])
        #expect(
            found.list.map(\.pointer)
                == [
                    "/tables/0/tenant/column", "/tables/0/tenant/colum", "/tables/0/audience/select/0",
                    "/tables/0/audience/delete/0",
                ])
    }

    @Test func unreadableFiles_areReported_inOneLine() throws {
        for (text, part) in [
            ("a: [1\nb", "line 3, column 1"), ("version: 1\nversion: 1", "unique"),
            (String(repeating: "[", count: 20_000), "nesting"),
        ] {
            let found = try Self.mistakes(of: text)
            #expect(found.detail.contains(part), "\(found.detail)")
            #expect(found.detail.utf8.count < 400, "\(found.detail)")
            #expect(!found.detail.contains("\n"))
        }
        #expect(throws: TablesPage.Mistakes.self) { try TablesPage(named: "/nowhere") }
        #expect(try Self.mistakes(of: "").list.map(\.line) == [1])
    }

    /// Nine lines of aliases expand to a billion values.
    @Test func repeatedAliases_areRefused_beforeTheyAreWrittenOut() throws {
        let lines = (1...9).map {
            "a\($0): &a\($0) [\(Array(repeating: "*a\($0 - 1)", count: 10).joined(separator: ","))]"
        }
        let found = try Self.mistakes(of: (["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + lines).joined(separator: "\n"))
        #expect(found.detail.contains("aliases"))
    }
}

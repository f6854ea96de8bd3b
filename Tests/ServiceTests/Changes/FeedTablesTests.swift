import Foundation
import TestSupport
import Testing

@testable import Service

/// `bellhop policies --tables`: a file of tables is checked as at the start, and every mistake told with its line.
@Suite struct FeedTablesTests {
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
            school.tables.map(\.name).sorted()
                == [
                    "attendance", "classes", "homework", "parent_students", "sessions", "student_achievements",
                    "student_stickers", "student_trophies", "students",
                ].map { "public.\($0)" })
        let links = try #require(school.tables.first { $0.name == "public.parent_students" })
        #expect(links.tenant == "{school_id}, else that of students by {student_id}")
        #expect(links.memberships.map(\.grants) == ["student:{student_id}:parent"])
        let posts = try #require(try TablesPage(named: "posts").tables.first)
        #expect(posts.audience.map(\.condition) == ["visibility is public", nil])
        #expect(posts.counts == ["likeCount: like_count", "repostCount: repost_count"])
        let todos = try #require(try TablesPage(named: "todo").tables.first)
        #expect(todos.audience.map(\.template) == ["user:{user_id}"])
        #expect(todos.invalidations.map(\.keys) == [["todos"]])
        #expect(todos.audience[0].operations == ["insert", "update", "delete"])
    }

    @Test func mistakes_areTold_withTheirLines() throws {
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

    @Test func unreadableFiles_areTold_inOneLine() throws {
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

    /// Nine lines of aliases stand for a thousand million values.
    @Test func repeatedAliases_areRefused_beforeTheyAreWrittenOut() throws {
        let lines = (1...9).map {
            "a\($0): &a\($0) [\(Array(repeating: "*a\($0 - 1)", count: 10).joined(separator: ","))]"
        }
        let found = try Self.mistakes(of: (["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + lines).joined(separator: "\n"))
        #expect(found.detail.contains("aliases"))
    }
}

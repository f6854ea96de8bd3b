import BellhopClient
import Database
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// Exports: everything about the person that the tables declare, and nothing of others.
@Suite(.timed) struct ExportTests {
    private static let path = "/v1/users/\(ErasedTown.ada)/export"

    /// Returns the rows of an export by table, after a check of its first and last line.
    private static func rows(_ text: String) throws -> [String: [JSON]] {
        var lines = try text.split(separator: "\n").map { try JSON(parsing: Data($0.utf8)) }
        try #require(lines.count >= 2, "\(text)")
        let (first, last) = (lines.removeFirst(), lines.removeLast())
        #expect(first["kind"].string == "export" && first["data"]["userId"].string == ErasedTown.ada)
        #expect(last["kind"].string == "end" && last["data"]["rows"].int == lines.count)
        return Dictionary(grouping: lines) { $0["kind"].string ?? "" }.mapValues { $0.map { $0["data"] } }
    }

    /// Compares an export with the stored rows. Each row that names the person in a declared column belongs to the
    /// export.
    @Test func export_hasEveryRowOfThePerson_andNoOther() async throws {
        let town = try await ErasedTown()
        let answer = try await town.service.call("GET", Self.path, as: .service(tenant: "A"))
        #expect(answer.status == 200 && answer.headers["content-type"] == "application/x-ndjson")
        #expect(answer.headers["cache-control"] == "no-store, no-transform")
        let exported = try Self.rows(answer.text)
        let stored = try town.rows(of: "A")
        for table in Catalog.tables {
            guard let policy = table.person, policy.isExported else {
                #expect(exported[table.name] == nil, "\(table.name)")
                continue
            }
            let links = Set(policy.links.map { "\($0.column): \(ErasedTown.ada)" })
            let own = (stored[table.name] ?? []).filter { row in
                !links.isDisjoint(with: row.components(separatedBy: ", "))
            }
            #expect(exported[table.name, default: []].count == own.count, "\(table.name)")
        }
        // Every marked text of the person that is stored in these tables, and no text of others.
        let mark = ErasedTown.mark(ErasedTown.ada, "A")
        for what in ["title", "message", "service", "barber", "last", "name", "post", "score"] {
            #expect(answer.text.contains(mark + what), "\(what)")
        }
        let others = ErasedTown.tenants.flatMap { tenant in
            [ErasedTown.ada, ErasedTown.ben, ErasedTown.zoe].map { ErasedTown.mark($0, tenant) }
        }.filter { $0 != mark }
        for other in others { #expect(!answer.text.contains(other), "\(other)") }
    }

    /// Members have the names, the times and the JSON of the API. Secrets are left out.
    @Test func members_areThoseOfTheAPI_withoutSecrets() async throws {
        let town = try await ErasedTown()
        let answer = try await town.service.call("GET", Self.path, as: .service(tenant: "A"))
        let exported = try Self.rows(answer.text)
        let note = try #require(exported["notifications"]?.first)
        let list = try await town.send(.user(ErasedTown.ada, tenant: "A"), "GET", "/v1/notifications")["items"].array
        let shown = try #require(list?.first { $0["id"] == note["id"] })
        for member in ["id", "title", "message", "category", "createdAt", "data"] {
            #expect(note[member] == shown[member], "\(member)")
        }
        #expect(exported["posts"]?.allSatisfy { $0["media"].array?.isEmpty == true } == true)
        let device = try #require(exported["devices"]?.first)
        #expect(device["address"].isNull && device["fingerprint"].isNull && !device["platform"].isNull)
        #expect(exported.values.joined().allSatisfy { $0["tenant"].isNull })
    }

    @Test func export_isNotedInTheAuditLog() async throws {
        let service = try TestService.start()
        let answer = try await service.call("GET", Self.path, as: .service())
        #expect(try Self.rows(answer.text)["audit"]?.count == 1)
        let entries =
            try await service.call(
                "GET", "/v1/audit?target=\(ErasedTown.ada)", as: .service()
            ).json["items"].array ?? []
        #expect(entries.map { $0["action"].string } == ["GET /v1/users/{id}/export"])
        #expect(entries.first?["outcome"].string == "shown")
    }

    /// More rows than a statement reads and than a piece holds, found by an index and by a scan.
    @Test func largeExport_isComplete() async throws {
        let service = try TestService.start()
        let count = 3 * ErasureLimits.exportedAtOnceMax + 7
        try service.app.store.writeAndWait { db in
            let why = Unscoped.audit("a test")
            for number in 0..<count {
                try db.run(
                    """
                    INSERT INTO \(PostsFeature.follows, unscoped: why) (tenant, follower_id, author_id, followed_at)
                    VALUES ('default', \(ErasedTown.ada), \("author-\(number)"), 0)
                    """)
                try db.run(
                    """
                    INSERT INTO \(PostsFeature.engagements, unscoped: why) (tenant, post_id, kind, user_id, engaged_at)
                    VALUES ('default', \("post-\(number)"), 'like', \(number % 2 == 0 ? ErasedTown.ada : "ben"), 0)
                    """)
            }
        }
        let exported = try Self.rows(try await service.call("GET", Self.path, as: .service()).text)
        let authors = exported["follows", default: []].compactMap { $0["authorId"].string }
        #expect(authors.count == count && Set(authors).count == count)
        let posts = exported["post_engagements", default: []].compactMap { $0["postId"].string }
        #expect(posts.count == (count + 1) / 2 && Set(posts).count == posts.count)
    }

    /// After an erasure only what the request itself has noted is left.
    @Test func erasedPerson_hasNothingToExport() async throws {
        let town = try await ErasedTown()
        try await town.erase(ErasedTown.ada, "A")
        let answer = try await town.service.call("GET", Self.path, as: .service(tenant: "A"))
        #expect(Set(try Self.rows(answer.text).keys) == ["audit"])
    }
}

import BellhopClient
import Database
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// The chain of the audit log: what its verification finds, erased ids, expired entries, and replicas.
@Suite(.timed) struct AuditChainTests {
    private let service: TestService

    init() async throws { service = try TestService.start(at: TestService.morning) }

    private func revoke(_ count: Int, through service: TestService? = nil, tenant: String? = nil) async throws {
        let service = service ?? self.service
        for index in 0..<count {
            let answer = try await service.call(
                "POST", "/v1/revocations", as: .service(tenant: tenant), ["sessionId": .string("x\(index)")])
            #expect(answer.status == 201)
        }
    }

    private func faults(known: String = "") throws -> [String] {
        try service.app.store.read { db in
            try AuditFeature.verify(known: AuditVerification.places(in: known), in: db).compactMap(\.fault)
        }
    }

    private func lines() throws -> String {
        try service.app.store.read { try AuditFeature.verify(in: $0) }.map(\.line).joined(separator: "\n")
    }

    private static let tampering = Unscoped.audit("a test changes entries")

    private func run(_ sql: SQL) async throws {
        #expect(try await service.app.store.write { try $0.run(sql) } > 0)
    }

    // MARK: Verification

    @Test func intactChain_isVerified() async throws {
        #expect(try faults().isEmpty)
        try await revoke(5)
        #expect(try faults().isEmpty)
        #expect(try lines().hasPrefix("default\t5\t"))
        try service.expectExactCounts()
    }

    @Test(arguments: [
        "action = 'GET /v1/me'", "noted_at = noted_at + 1", "count = 2", "outcome = 'shown'", "request_id = 'another'",
        "actor_kind = 'staff'", "actor_id = 'another'", "target_id = 'another'", "target_kind = 'posts'",
        "actor_digest = 'another'", "target_digest = 'another'", "previous_hash = 'another'", "hash = 'another'",
    ])
    func changedEntry_isNamed(_ change: String) async throws {
        try await revoke(5)
        try await run(
            """
            UPDATE \(AuditFeature.entries, unscoped: Self.tampering) SET \(SQL(unchecked: change)) WHERE sequence = 3
            """)
        let found = try #require(try faults().first)
        #expect(found.hasPrefix("entry 3 was changed"), "\(found)")
    }

    @Test(arguments: [1, 3, 5]) func removedEntry_isNamed(_ sequence: Int) async throws {
        try await revoke(5)
        try await run("DELETE FROM \(AuditFeature.entries, unscoped: Self.tampering) WHERE sequence = \(sequence)")
        let found = try #require(try faults().first)
        #expect(found.hasPrefix("entry \(sequence) is missing"), "\(found)")
    }

    /// A writer to the database can compute all hashes again. Lines that are kept elsewhere reveal it.
    @Test func rewrittenChain_isFound_byEarlierLines() async throws {
        try await revoke(3)
        let known = try lines()
        #expect(try faults(known: known).isEmpty)
        try await revoke(2)
        #expect(try faults(known: known).isEmpty)
        for table in [AuditFeature.entries, AuditFeature.heads] {
            try await run("DELETE FROM \(table, unscoped: Self.tampering)")
        }
        #expect(try faults().isEmpty)
        #expect(try faults(known: known) == ["entry 1 is missing: an earlier verification found entry 3"])
        try await revoke(4)
        #expect(try faults().isEmpty)
        #expect(
            try faults(known: known) == ["entry 3 was changed: an earlier verification found another hash"])
    }

    /// The erasure of a person blanks the ids and keeps the chain.
    @Test func blankedIds_keepTheChain() async throws {
        try await revoke(3)
        try await revoke(1, through: service, tenant: "other")
        let runner = service.app.runner
        let rows = try #require(PersonRows(AuditFeature.entries))
        try await service.app.store.write { db in
            try runner.write(as: .system(tenant: "default"), in: db) {
                _ = try rows.step(isFenced: true)?.run("backend", nil, $0)
            }
        }
        #expect(try faults().isEmpty)
        let others = try await service.call("GET", "/v1/audit?actor=backend", as: .service(tenant: "other"))
        #expect(others.json["items"].array?.count == 1)
        let items = try await service.call("GET", "/v1/audit", as: .service()).json["items"].array ?? []
        #expect(items.count == 3)
        #expect(items.allSatisfy { $0["actorId"].isNull && $0["actorDigest"].string?.count == 64 })
    }

    @Test func expiredEntries_areDeleted_andTheRestIsVerified() async throws {
        try await revoke(3)
        let known = try lines()
        service.clock.advance(seconds: 200 * 86_400)
        try await revoke(2)
        service.clock.advance(seconds: 200 * 86_400)
        try await service.run(AuditFeature.pruning)
        #expect(try faults(known: known).isEmpty)
        let items = try await service.call("GET", "/v1/audit", as: .service()).json["items"].array ?? []
        #expect(items.map { $0["sequence"].int } == [5, 4])
        service.clock.advance(seconds: 200 * 86_400)
        try await service.run(AuditFeature.pruning)
        #expect(try faults().isEmpty)
        try await revoke(1)
        #expect(try faults().isEmpty)
        #expect(try lines().hasPrefix("default\t6\t"))
        try await run("DELETE FROM \(AuditFeature.anchors, unscoped: Self.tampering)")
        #expect(try faults() == ["entry 1 is missing"])
    }

    /// A transaction that fails has no entry.
    @Test func rolledBackWrite_leavesNoEntry() async throws {
        struct Failing: Error {}
        let runner = service.app.runner
        let act = AuditedAct(
            office: .service, actor: "backend", action: "test", requestId: nil, isAlwaysNoted: true, isCounted: false)
        await #expect(throws: Failing.self) {
            try await service.app.store.write { db in
                try runner.write(as: .system(tenant: "default"), in: db, acts: [act]) { _ in throw Failing() }
            }
        }
        #expect(try lines().isEmpty)
    }

    // MARK: Backups and replicas

    @Test func backup_isVerified() async throws {
        let directory = try TemporaryDirectory()
        let service = try TestService.start(
            on: TestDatabase(url: "sqlite:\(directory.file("live.sqlite"))", name: nil), in: directory,
            at: TestService.morning)
        try await revoke(3, through: service)
        func settings(_ name: String) throws -> Settings {
            try TestService.settings(["database": "sqlite:\(directory.file(name))", "jwtSecret": TestService.secret])
        }
        try Operations.backUp(settings("live.sqlite"), to: directory.file("copy.sqlite"))
        let found = try Operations.verifyAudit(settings("copy.sqlite"))
        #expect(found.map(\.sequence) == [3])
        #expect(found.allSatisfy { $0.fault == nil })
        #expect(try Operations.verifyAudit(settings("live.sqlite"), known: found[0].line).map(\.fault) == [nil])
    }

    /// The command names the first broken entry, and its exit code tells scripts.
    @Test func command_verifies_andFindsTampering() async throws {
        let directory = try TemporaryDirectory()
        let url = "sqlite:\(directory.file("live.sqlite"))"
        let service = try TestService.start(
            on: TestDatabase(url: url, name: nil), in: directory, at: TestService.morning)
        try await revoke(3, through: service)
        func verify(_ arguments: String...) throws -> (status: Int32, text: String) {
            try BellhopProcess(["audit", "verify"] + arguments, settings: ["DATABASE": url]).finish()
        }
        let intact = try verify()
        #expect(intact.status == 0)
        #expect(intact.text.hasPrefix("default\t3\t"), "\(intact.text)")
        let heads = directory.file("heads.txt")
        try Data(intact.text.utf8).write(to: URL(fileURLWithPath: heads))
        #expect(try verify("--known", heads).status == 0)
        try await service.app.store.write { db in
            _ = try db.run(
                "UPDATE \(AuditFeature.entries, unscoped: Self.tampering) SET count = 7 WHERE sequence = 2")
        }
        let changed = try verify()
        #expect(changed.status == 1)
        #expect(changed.text.contains("tenant default: entry 2 was changed"), "\(changed.text)")
    }

    /// Both replicas write to the chains of two tenants at once.
    @Test func replicas_shareOneChain() async throws {
        let (a, b) = try TestService.startReplicas()
        let count = effort(quick: 60, full: 200, long: 1000)
        try await concurrently(0..<count) { index in
            let (service, tenant) = (index % 2 == 0 ? a : b, index % 3 == 0 ? "t1" : "t2")
            let answer = try await service.call(
                "POST", "/v1/revocations", as: .service(tenant: tenant), ["sessionId": .string("x\(index)")])
            #expect(answer.status == 201)
            try await service.publish("e\(index)", to: "u\(index % 7)")
        }
        a.clock.advance(seconds: 60)
        try await a.run(AuditFeature.endingMinutes)
        let found = try b.app.store.read { try AuditFeature.verify(in: $0) }
        #expect(found.allSatisfy { $0.fault == nil })
        #expect(found.filter { $0.tenant != "default" }.map(\.sequence).reduce(0, +) == count)
        let items = try await b.call("GET", "/v1/audit", as: .service()).json["items"].array ?? []
        #expect(items.reduce(0) { $0 + ($1["count"].int ?? 0) } == count)
    }
}

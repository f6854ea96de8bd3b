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
            try AuditFeature.verify(
                known: AuditVerification.entries(in: known), keptDays: 365, at: service.clock.now, in: db
            ).compactMap(\.fault)
        }
    }

    private func lines() throws -> String {
        try service.app.store.read { try AuditFeature.verify(at: service.clock.now, in: $0) }
            .map(\.line).joined(separator: "\n")
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

    /// The output of a verification after an attack is appended to the file, too. The first line of an entry counts.
    @Test func laterLines_doNotReplaceEarlierOnes() async throws {
        try await revoke(3)
        let known = try lines()
        let hash = String(known.split(separator: "\t")[2])
        let invented = known.replacingOccurrences(of: hash, with: String(repeating: "a", count: 64))
        #expect(try faults(known: known + "\n" + invented).isEmpty)
        #expect(
            try faults(known: invented + "\n" + known)
                == ["entry 3 was changed: an earlier verification found another hash"])
    }

    /// A file that is not the output of a verification would prove nothing.
    @Test(arguments: [
        "nope", "default\t3", "default 3 HASH 2026-01-10T09:00:00.000Z", "default\t3\tHAS\t2026-01-10T09:00:00.000Z",
        "default\t99999999999999999999\tHASH\t2026-01-10T09:00:00.000Z", "default\t-1\tHASH\t2026-01-10T09:00:00.000Z",
        "default\t3\tHASH\t-", "default\t3\tHASH",
    ])
    func unreadableLine_isNamed(_ line: String) async throws {
        try await revoke(3)
        let known = try "\(lines())\r\n\n\(AuditVerification.limits)\n"
        #expect(try faults(known: known + "empty\t0\t\(AuditEntry.origin)\t-\n").isEmpty)
        let unreadable = known + line.replacingOccurrences(of: "HASH", with: String(repeating: "a", count: 64))
        let error = #expect(throws: AuditVerification.UnreadableLine.self) { try faults(known: unreadable) }
        #expect(error?.number == 4)
    }

    /// An attacker that can write to the database can invent any number. No number ends the process.
    @Test(arguments: [36_501, Int(1e9), .max, .min]) func inventedDays_areFound(_ days: Int) async throws {
        try await revoke(3)
        let at = service.clock.now
        let hash = String(try lines().split(separator: "\t")[2])
        for (time, newest) in [(at, Int64.min), (at, at.microseconds), (Timestamp(microseconds: .min), .max)] {
            let cut = AuditCut(through: 1, hash: hash, at: Timestamp(microseconds: newest), keptDays: days)
            try await service.app.store.write { db in
                try AuditLog(backends: Backends(), gate: .open).append(
                    [AuditNotes(tenant: "default", at: time, .retention(cut, 1))], in: db)
            }
        }
        #expect(try faults().count == 1)
    }

    /// The erasure of a person blanks the ids and keeps the chain.
    @Test func blankedIds_keepTheChain() async throws {
        try await revoke(3)
        try await revoke(1, through: service, tenant: "other")
        let runner = service.app.runner
        let rows = try #require(PersonRows(AuditFeature.entries))
        try await service.app.store.write { db in
            try runner.write(as: .system(tenant: "default"), in: db) {
                _ = try rows.step(isClosed: true)?.run("backend", nil, $0)
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
        #expect(items.map { $0["sequence"].int } == [6, 5, 4])
        #expect(items[0]["actorKind"] == "bellhop" && items[0]["action"] == "retention" && items[0]["count"] == 3)
        #expect(items[0]["cut"]["through"] == 3 && items[0]["cut"]["keptDays"] == 365)
        #expect(known.contains(items[0]["cut"]["hash"].string ?? "-"))
        service.clock.advance(seconds: 200 * 86_400)
        try await service.run(AuditFeature.pruning)
        #expect(try faults(known: known).isEmpty)
        try await revoke(1)
        #expect(try faults().isEmpty)
        #expect(try lines().hasPrefix("default\t8\t"))
    }

    /// An attacker that empties the log can invent where it begins. The line of an entry that was too young reveals it.
    @Test func emptiedLog_isFound_byEarlierLines() async throws {
        try await revoke(3)
        let known = try lines()
        let hash = known.split(separator: "\t")[2]
        for table in [AuditFeature.entries, AuditFeature.heads] {
            try await run("DELETE FROM \(table, unscoped: Self.tampering)")
        }
        let at = service.clock.now
        let cut = AuditCut(through: 3, hash: String(hash), at: at.adding(seconds: -400 * 86_400), keptDays: 365)
        try await service.app.store.write { db in
            try db.run(
                """
                INSERT INTO \(AuditFeature.heads, unscoped: Self.tampering) (tenant, sequence, hash)
                VALUES ('default', 3, \(cut.hash))
                """)
            try AuditLog(backends: Backends(), gate: .open).append(
                [AuditNotes(tenant: "default", at: at, .retention(cut, 3))], in: db)
        }
        #expect(try faults().isEmpty)
        #expect(
            try faults(known: known) == ["entry 3 is missing: it was too young to be deleted by entry 4"])
        // A hash that no one has seen is found too.
        #expect(
            try faults(known: known.replacingOccurrences(of: hash, with: String(repeating: "a", count: 64)))
                == ["entry 3 was changed: an earlier verification found another hash"])
    }

    /// The expired beginning of a chain is deleted once an hour, so that the deletions do not fill the chain.
    @Test func expiredEntries_areDeletedTogether() async throws {
        service.clock.advance(seconds: 7200)
        for _ in 0..<4 {
            try await revoke(1)
            service.clock.advance(seconds: 600)
        }
        service.clock.advance(seconds: 365 * 86_400 - 1800)
        for _ in 0..<12 {
            service.clock.advance(seconds: 600)
            try await service.run(AuditFeature.pruning)
        }
        let items = try await service.call("GET", "/v1/audit", as: .service()).json["items"].array ?? []
        #expect(items.map { $0["action"] } == ["retention"], "\(items)")
        #expect(items.first?["count"] == 4)
    }

    /// The order of a chain is the order of the commits. The clock of another replica may be behind.
    @Test func times_mayGoBack_andListsFindThem() async throws {
        let append = { (minutes: Int64) in
            let (at, name) = (service.clock.now.adding(seconds: 60 * minutes), "minute \(minutes)")
            let act = PrivilegedAct(
                privilege: .service, actor: "backend", action: name, requestId: nil, isAlwaysNoted: true,
                isCounted: false)
            try await service.app.store.write { db in
                let item = AuditNotes.Item(outcome: .accepted)
                try AuditLog(backends: Backends(), gate: .open).append(
                    [AuditNotes(tenant: "default", at: at, .each(act, [item]))], in: db)
            }
        }
        for minutes in [0, 1, 600_000, 2, 1, 3] as [Int64] { try await append(minutes) }
        func minutes(_ query: String) async throws -> [String] {
            let answer = try await service.call("GET", "/v1/audit?\(query)", as: .service())
            return (answer.json["items"].array ?? []).map { $0["action"].string?.dropFirst(7).description ?? "" }
        }
        #expect(try await minutes("limit=9") == ["3", "1", "2", "600000", "1", "0"])
        func time(_ minutes: Int64) -> String { service.clock.now.adding(seconds: 60 * minutes).rfc3339 }
        #expect(try await minutes("from=\(time(1))&to=\(time(3))") == ["2", "1", "1"])
        #expect(try await minutes("from=\(time(4))") == ["600000"])
        #expect(try await minutes("to=\(time(1))") == ["0"])
        var (pages, cursor) = ([String](), String?.none)
        repeat {
            let page = try await service.call(
                "GET", "/v1/audit?limit=2&from=\(time(1))\(cursor.map { "&cursor=\($0)" } ?? "")", as: .service())
            pages += (page.json["items"].array ?? []).map { $0["action"].string?.dropFirst(7).description ?? "" }
            cursor = page.json["next"].string
        } while cursor != nil
        #expect(pages == ["600000", "3", "2", "1", "1"])
        #expect(try faults().isEmpty)
    }

    /// A transaction that fails has no entry.
    @Test func rolledBackWrite_leavesNoEntry() async throws {
        struct Failing: Error {}
        let runner = service.app.runner
        let act = PrivilegedAct(
            privilege: .service, actor: "backend", action: "test", requestId: nil, isAlwaysNoted: true, isCounted: false
        )
        await #expect(throws: Failing.self) {
            try await service.app.store.write { db in
                try runner.write(as: .system(tenant: "default"), in: db, for: PerformedRequests(acts: [act])) { _ in
                    throw Failing()
                }
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

    /// The command names the first broken entry. Scripts find the result in its exit code.
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
        #expect(intact.text.contains("Without --known, "), "\(intact.text)")
        let heads = directory.file("heads.txt")
        try Data(intact.text.utf8).write(to: URL(fileURLWithPath: heads))
        let known = try verify("--known", heads)
        #expect(known.status == 0 && !known.text.contains("Without --known, "))
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

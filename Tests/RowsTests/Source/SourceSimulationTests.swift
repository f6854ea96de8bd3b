import Rows
import TestSupport
import Testing

/// A reader of an app's log under a seeded schedule: rows, reads, restores of an older disk, promotions, dropped slots,
/// replaced slots, tables that are removed from the publication and added again, and processes that end at any step of
/// creating a slot.
///
/// Invariant: after each snapshot, the reader receives every row of the server once and in order, or takes a new
/// snapshot.
private struct SourceSimulation {
    private struct Slot {
        var confirmed: Int
    }

    private struct Server {
        /// The position of a row in the log is its index plus one; the numbers distinguish rows at the same position.
        var rows: [Int] = []
        var timeline = 1
        var slot: Slot?
        var written = 0
        /// The number of the table's entry in the publication; nil while the table is not in it.
        var entry: Int? = 1
        var entriesMade = 1
        /// Rows that were written while the table was not published.
        var unpublished: Set<Int> = []
    }

    private enum Stored {
        case none
        case making(isFirst: Bool)
        case read(source: String, lsn: Int, publication: SourcePublication)

        func position(_ now: SourcePublication) -> SourceContinuity.Position {
            switch self {
            case .none: .none
            case .making(let isFirst): .making(isFirst: isFirst)
            case .read(let source, let lsn, let publication):
                .read(
                    source: source, lsn: LSN(rawValue: UInt64(lsn)), wasPublished: now.continues(publication))
            }
        }
    }

    private let schedule: Schedule
    private var server = Server()
    private var stored = Stored.none
    private var isConnected = false
    /// The rows of the last snapshot, and the rows that were read after it.
    private var known: [Int] = []

    private init(_ schedule: Schedule) { self.schedule = schedule }

    private mutating func number(_ bound: Int) -> Int { schedule.number(bound) }

    private func tell(_ text: @autoclosure () -> String) { schedule.tell(text()) }

    /// - Returns: the violated invariant, or nil.
    static func run(_ schedule: Schedule) -> String? {
        var simulation = SourceSimulation(schedule)
        for _ in 0..<schedule.count(10...49) {
            schedule.step()
            simulation.act()
        }
        schedule.step()
        simulation.putBack()
        for _ in 0..<2 {
            simulation.connect(endsAt: nil)
            simulation.read(.max)
        }
        return simulation.known == simulation.server.rows
            ? nil : "known \(simulation.known), the server has \(simulation.server.rows)"
    }

    private mutating func act() {
        switch number(14) {
        case 0, 1, 2: write(1 + number(3))
        case 3, 4: read(1 + number(3))
        case 5: connect(endsAt: number(4) == 0 ? number(3) : nil)
        case 6: disconnect()
        case 7: restore()
        case 8: promote()
        case 12: withdraw()
        case 13: putBack()
        case 9: dropSlot()
        default: connect(endsAt: nil)
        }
    }

    private mutating func disconnect() {
        isConnected = false
        tell("the reader disconnects")
    }

    private mutating func withdraw() {
        server.entry = nil
        tell("the table is removed from the publication")
    }

    private mutating func dropSlot() {
        guard !isConnected else { return }
        let isMadeAgain = number(2) == 0
        server.slot = isMadeAgain ? Slot(confirmed: server.rows.count) : nil
        tell("the slot is dropped\(isMadeAgain ? " and made again by somebody else" : "")")
    }

    private mutating func write(_ count: Int) {
        for _ in 0..<count {
            server.written += 1
            if server.entry == nil { server.unpublished.insert(server.written) }
            server.rows.append(server.written)
        }
        tell("the server has the rows \(server.rows)")
    }

    private mutating func read(_ count: Int) {
        guard isConnected, case .read(let source, let lsn, let publication) = stored, lsn < server.rows.count else {
            return
        }
        // A slot sends nothing of before the position that it has confirmed.
        let rows = server.rows[min(max(lsn, server.slot?.confirmed ?? lsn), server.rows.count)...].prefix(count)
        known += rows.filter { !server.unpublished.contains($0) }
        stored = .read(source: source, lsn: rows.endIndex, publication: publication)
        if number(2) == 0 { server.slot?.confirmed = rows.endIndex }
        tell("the reader reads up to position \(rows.endIndex) and knows \(known)")
    }

    private mutating func putBack() {
        guard server.entry == nil else { return }
        server.entriesMade += 1
        server.entry = server.entriesMade
        tell("the table is added to the publication")
    }

    private func publication(_ entry: Int) -> SourcePublication {
        // The stored form, read again.
        SourcePublication("\(SourcePublication(id: "1", entries: ["t": "\(entry)"], of: ["t"]))")
    }

    /// Restores an older state of the disk, including its slot. The running reader reconnects before the server writes
    /// again.
    private mutating func restore() {
        let place = number(server.rows.count + 1)
        isConnected = false
        server.rows.removeLast(server.rows.count - place)
        if let confirmed = server.slot?.confirmed { server.slot = Slot(confirmed: min(confirmed, place)) }
        tell("an older disk is restored, with the rows \(server.rows)")
        putBack()
        connect(endsAt: number(4) == 0 ? number(3) : nil)
    }

    /// Promotes a standby, with or without the slot. The standby writes rows before the reader connects.
    private mutating func promote() {
        isConnected = false
        server.rows.removeLast(min(server.rows.count, number(4)))
        server.timeline += 1
        if let confirmed = server.slot?.confirmed {
            server.slot = number(2) == 0 ? nil : Slot(confirmed: min(confirmed, server.rows.count))
        }
        tell("a standby takes over with the rows \(server.rows), \(server.slot == nil ? "without" : "with") the slot")
        write(number(6))
    }

    /// - Parameter endsAt: the step of creating the slot after which the process ends.
    private mutating func connect(endsAt: Int?) {
        let identity = SourceIdentity(system: "1", database: "app", timeline: "\(server.timeline)")
        let slot = server.slot.map {
            SourceContinuity.Slot(isLost: false, confirmed: LSN(rawValue: UInt64($0.confirmed)))
        }
        let end = LSN(rawValue: UInt64(server.rows.count))
        // A table that is not published stops the start.
        guard let entry = server.entry else {
            isConnected = false
            return
        }
        let publication = publication(entry)
        let continuity = SourceContinuity(stored.position(publication), slot, of: identity, end: end)
        isConnected = continuity == .resumes
        tell("the reader connects: \(continuity)\(endsAt.map { ", and its process ends at step \($0)" } ?? "")")
        if isConnected { return }
        stored = .making(isFirst: continuity == .begins)
        if endsAt == 0 { return }
        server.slot = nil
        if endsAt == 1 { return }
        server.slot = Slot(confirmed: server.rows.count)
        if endsAt == 2 { return }
        (known, stored) = (server.rows, .read(source: "\(identity)", lsn: server.rows.count, publication: publication))
        isConnected = true
    }
}

@Suite(.timed) struct SourceSimulationTests {
    @Test func everyRowArrivesOnce_orTheSnapshotRestarts_underAnySchedule() {
        let runs = effort(quick: 20_000, full: 20_000, long: 10_000_000)
        let failure = Schedule.failure(seed: randomSeed(), runs: runs) { SourceSimulation.run($0) }
        #expect(failure == nil, "\(failure ?? "")")
    }

    private static let identity = SourceIdentity(system: "1", database: "app", timeline: "2")

    private static func continuity(_ source: String, at lsn: UInt64 = 50, confirmed: UInt64 = 40) -> SourceContinuity {
        let slot = SourceContinuity.Slot(isLost: false, confirmed: LSN(rawValue: confirmed))
        return SourceContinuity(
            .read(source: source, lsn: LSN(rawValue: lsn)), slot, of: identity, end: LSN(rawValue: 60))
    }

    @Test func losses_areDistinguished() {
        #expect(Self.continuity("1/app#2") == .resumes)
        #expect(Self.continuity("1/app#1") == .lost(.otherTimeline))
        #expect(Self.continuity("2/app#2") == .lost(.otherLog))
        #expect(Self.continuity("1/app#2", at: 61) == .lost(.endsEarlier))
        #expect(Self.continuity("1/app#2", confirmed: 51) == .lost(.slotMadeAgain))
    }

    @Test func publications_continue_whileEntriesStay() {
        let names = ["public.a b", "public.c"]
        let before = SourcePublication(id: "7", entries: ["public.a b": "8", "public.c": "9"], of: names)
        #expect(SourcePublication("\(before)") == before)
        #expect(before.continues(SourcePublication("")))
        // A change of the operations is a gap of all tables.
        let changed = SourcePublication(id: "7", change: "500", entries: ["public.c": "9"], of: ["public.c"])
        #expect(SourcePublication("\(changed)") == changed)
        #expect(changed.continues(before) && changed.continues(changed))
        #expect(
            !SourcePublication(id: "7", change: "501", entries: ["public.c": "9"], of: ["public.c"]).continues(changed))
        #expect(before.continues(SourcePublication(id: "7", entries: ["public.c": "9"], of: ["public.c"])))
        #expect(!before.continues(SourcePublication(id: "7", entries: ["public.c": "10"], of: ["public.c"])))
        #expect(!before.continues(SourcePublication(id: "6", entries: ["public.c": "9"], of: ["public.c"])))
        #expect(!before.continues(SourcePublication(id: "7", entries: [:], of: names)))
    }

    @Test func logOfADatabaseWithALongerName_isAnother() {
        #expect(Self.continuity("1/apps#2") == .lost(.otherLog))
    }
}

import TestSupport
import Testing

@testable import Rows
@testable import Values

@Suite(.timed) struct SubscriptionIndexTests {
    private func subscription(
        _ filter: String, table: String = "posts", events: TableSubscription.Events = .all
    ) throws -> TableSubscription {
        TableSubscription(id: filter, table: table, events: events, filter: try Filter(parsing: filter))
    }

    private func change(_ old: Filter.Row?, _ new: Filter.Row?, tenant: ID<Tenant> = "a", table: String = "posts")
        -> RowVersions
    {
        RowVersions(
            tenant: tenant, schema: "public", table: table,
            event: old == nil ? .insert : new == nil ? .delete : .update, old: old, new: new)
    }

    private func matches(_ index: inout SubscriptionIndex, _ change: RowVersions) -> [SubscriptionMatch] {
        var found: [SubscriptionMatch] = []
        index.forEachMatch(change) { found.append($0) }
        return found
    }

    /// R-ENG-E-1: the server finds `id=in.(…)` by hash.
    @Test func change_findsSubscriptions_byTheirIds() throws {
        var index = SubscriptionIndex()
        try index.replace(0, tenant: "a", user: "u", with: [try subscription("id=in.(1,2,3)")])
        try index.replace(
            1, tenant: "a", user: "u", with: [try subscription("id=in.(3,4)"), try subscription("id=eq.3")])
        try index.replace(2, tenant: "b", user: "u", with: [try subscription("id=in.(3)")])
        try index.replace(3, tenant: "a", user: "u", with: [try subscription("id=in.(3)", table: "other")])
        let found = matches(&index, change(nil, ["id": .integer(3)]))
        #expect(found.map(\.slot) == [0, 1, 1])
        #expect(found.map(\.ordinal) == [0, 0, 1])
        #expect(found.allSatisfy { $0.matchesNew })
        #expect(!found.contains { $0.matchesOld })
        #expect(index.subscription(found[2]).id == "id=eq.3")
        #expect(matches(&index, change(nil, ["id": .integer(9)])).isEmpty)
        #expect(matches(&index, change(nil, ["id": .string("3")], tenant: "b")).map(\.slot) == [2])
        #expect(matches(&index, change(nil, ["id": .integer(3)], tenant: "c")).isEmpty)
    }

    /// The old and the new row are both looked up. A stream found by both receives the change once.
    @Test func change_matchesSubscriptionsOfOldAndNewRow_once() throws {
        var index = SubscriptionIndex()
        try index.replace(0, tenant: "a", user: "u", with: [try subscription("class_id=eq.c1")])
        try index.replace(1, tenant: "a", user: "u", with: [try subscription("class_id=eq.c2")])
        try index.replace(2, tenant: "a", user: "u", with: [try subscription("class_id=in.(c1,c2)")])
        let found = matches(
            &index,
            change(["id": .integer(1), "class_id": .string("c1")], ["id": .integer(1), "class_id": .string("c2")]))
        #expect(found.map(\.slot) == [0, 1, 2])
        #expect(found.map { $0.transition(seesOld: true, seesNew: true) } == [.leave, .enter, .update])
        #expect(found.map { $0.transition(seesOld: false, seesNew: true) } == [nil, .enter, .enter])
    }

    /// R-ENG-E-7: the visible posts change while the user scrolls.
    @Test func replacing_isAtomic_andRemovingFreesEverything() throws {
        var index = SubscriptionIndex()
        for slot in 0..<100 {
            let ids = (0..<50).map { "p\(slot)-\($0)" }.joined(separator: ",")
            try index.replace(
                Int32(slot), tenant: ID("t\(slot % 3)"), user: ID("u\(slot)"),
                with: [
                    try subscription("id=in.(\(ids))"), try subscription("points=gt.5"), try subscription(""),
                    try subscription("class=eq.\(slot % 5)", table: "students"),
                ])
        }
        #expect(index.subscriptionCount == 400)
        #expect(index.valueCount == 100 * 52)
        #expect(index.tableCount == 6)
        try index.replace(7, tenant: "t1", user: "u", with: [try subscription("id=eq.new")])
        #expect(index.subscriptions(of: 7).map(\.id) == ["id=eq.new"])
        #expect(!matches(&index, change(nil, ["id": .string("p7-1")], tenant: "t1")).contains { $0.slot == 7 })
        #expect(matches(&index, change(nil, ["id": .string("new")], tenant: "t1")).contains { $0.slot == 7 })
        for slot in 0..<100 { index.remove(Int32(slot)) }
        index.remove(5)
        index.remove(1000)
        #expect(index.subscriptionCount == 0)
        #expect(index.valueCount == 0)
        #expect(index.tableCount == 0)
        #expect(index.bucketBytes == 0)
        #expect(matches(&index, change(nil, ["id": .string("new")], tenant: "t1")).isEmpty)
    }

    /// A subscription is indexed under its least shared value. A school id that every filter contains costs nothing.
    @Test func conditionSharedByAll_isNotIndexed() throws {
        var index = SubscriptionIndex()
        for slot in 0..<500 {
            try index.replace(
                Int32(slot), tenant: "a", user: "u", with: [try subscription("school_id=eq.1,id=in.(\(slot),x\(slot))")]
            )
        }
        let row: Filter.Row = ["id": .integer(250), "school_id": .integer(1)]
        #expect(matches(&index, change(row, row)).map(\.slot) == [250])
        // The first stream is indexed under the school, because no other stream used that value yet. All others are
        // indexed under their ids.
        for (candidatesMax, isEvaluated) in [(1, false), (2, true)] {
            #expect(index.forEachMatch(change(row, row), candidatesMax: candidatesMax) { _ in } == isEvaluated)
        }
    }

    @Test func oneStream_canBeMatched() throws {
        var index = SubscriptionIndex()
        try index.replace(
            4, tenant: "a", user: "u", with: [try subscription("points=gt.5"), try subscription("id=eq.1")])
        try index.replace(5, tenant: "b", user: "u", with: [try subscription("points=gt.5")])
        var found: [Int32] = []
        for slot: Int32 in [3, 4, 5, 6] {
            index.forEachMatch(change(nil, ["points": .integer(6), "id": .integer(1)]), in: slot) {
                found.append($0.slot * 10 + $0.ordinal)
            }
        }
        #expect(found == [40, 41])
    }

    @Test func oneUsersSubscriptions_areBoundedInBytes_andGivenBackWithTheirStreams() throws {
        func refusal(_ body: () throws(Failure) -> Void) -> Failure? {
            do { try body() } catch { return error }
            return nil
        }
        let long = try subscription(
            "id=in.(\((0..<100).map { "\($0)" + String(repeating: "x", count: 100) }.joined(separator: ",")))")
        var index = SubscriptionIndex(bytesPerUserMax: 2 * long.storedBytes)
        for slot: Int32 in 0...1 { try index.replace(slot, tenant: "a", user: "u", with: [long]) }
        let refused = refusal { () throws(Failure) in try index.replace(2, tenant: "a", user: "u", with: [long]) }
        #expect(refused?.code == "subscriptions.too_many")
        // Replaced subscriptions, other users, and the same name in another tenant do not count.
        try index.replace(0, tenant: "a", user: "u", with: [long])
        try index.replace(3, tenant: "a", user: "v", with: [long])
        try index.replace(4, tenant: "b", user: "u", with: [long])
        index.remove(1)
        try index.replace(2, tenant: "a", user: "u", with: [long])
        // At least the bytes of the text, and not many times as many.
        #expect(long.storedBytes > 100 * 100)
        #expect(long.storedBytes < 3 * 100 * 102 + 100 * 64)
    }

    @Test func fullIndex_refuses_andStaysUnchanged() throws {
        func refusal(_ body: () throws(Failure) -> Void) -> Failure? {
            do { try body() } catch { return error }
            return nil
        }
        var index = SubscriptionIndex(valuesMax: 6, scannedPerTableMax: 2)
        let three = try subscription("id=in.(1,2,3)")
        try index.replace(0, tenant: "a", user: "u", with: [three])
        try index.replace(
            1, tenant: "a", user: "u", with: [try subscription("points=gt.1"), try subscription("points=gt.2")])
        let four = try subscription("id=in.(1,2,3,4)")
        #expect(
            refusal { () throws(Failure) in try index.replace(2, tenant: "a", user: "u", with: [four]) }?.kind
                == .unavailable)
        // The bound accounts for the values that the replacement frees: one stream may exchange three values for
        // four.
        try index.replace(0, tenant: "a", user: "u", with: [four])
        let scanned = try subscription("points=lt.1")
        index.remove(0)
        #expect(
            refusal { () throws(Failure) in try index.replace(2, tenant: "a", user: "u", with: [scanned]) }?.kind
                == .unavailable)
        try index.replace(2, tenant: "b", user: "u", with: [scanned])
        try index.replace(1, tenant: "a", user: "u", with: [scanned, scanned])
        #expect(index.subscriptions(of: 1).count == 2)
        // A filter that searches text counts as many filters.
        let search = try subscription("name=like.%x%")
        #expect(
            refusal { () throws(Failure) in try index.replace(3, tenant: "c", user: "u", with: [search]) }?.kind
                == .unavailable)
        var wider = SubscriptionIndex(scannedPerTableMax: 2 * (1 + FilterLimits.searchWeight))
        try wider.replace(0, tenant: "c", user: "u", with: [search, search])
        try wider.replace(0, tenant: "c", user: "u", with: [scanned, search])
        let both = [search, search]
        #expect(
            refusal { () throws(Failure) in try wider.replace(1, tenant: "c", user: "u", with: both) }?.kind
                == .unavailable)
        wider.remove(0)
        try wider.replace(1, tenant: "c", user: "u", with: both)
        let many = Array(repeating: three, count: 101)
        #expect(
            refusal { () throws(Failure) in try index.replace(3, tenant: "a", user: "u", with: many) }?.kind == .invalid
        )
    }

    /// The scanned filters of one user over all streams are bounded per table, and leave room for other users.
    @Test func oneUsersScannedFilters_areBounded_overAllStreams() throws {
        func code(_ body: () throws(Failure) -> Void) -> String? {
            do { try body() } catch { return error.code }
            return nil
        }
        var index = SubscriptionIndex(scannedPerTableMax: 3, scannedPerUserMax: 2)
        let (one, other) = (try subscription("points=gt.1"), try subscription("points=gt.1", table: "other"))
        try index.replace(0, tenant: "a", user: "ada", with: [one])
        try index.replace(1, tenant: "a", user: "ada", with: [one, other, other])
        #expect(
            code { () throws(Failure) in try index.replace(2, tenant: "a", user: "ada", with: [one]) }
                == "subscriptions.too_many")
        // Replaced filters count once, indexed filters do not count, and the ada of another tenant is a different
        // user.
        try index.replace(1, tenant: "a", user: "ada", with: [one])
        try index.replace(2, tenant: "a", user: "ada", with: [try subscription("id=eq.1,points=gt.1")])
        try index.replace(3, tenant: "b", user: "ada", with: [one, one])
        try index.replace(4, tenant: "a", user: "ben", with: [one])
        #expect(
            code { () throws(Failure) in try index.replace(5, tenant: "a", user: "cem", with: [one]) }
                == "subscriptions.full")
        index.remove(0)
        try index.replace(2, tenant: "a", user: "ada", with: [one])
    }

    private typealias Model = [Int32: (tenant: ID<Tenant>, list: [TableSubscription])]

    /// Evaluates every subscription.
    private static func matches(_ model: Model, _ change: RowVersions) -> [SubscriptionMatch] {
        var found: [SubscriptionMatch] = []
        for (slot, stream) in model.sorted(by: { $0.key < $1.key }) where stream.tenant == change.tenant {
            for (ordinal, one) in stream.list.enumerated()
            where one.table == change.table && one.events.contains(change.event) {
                let match = SubscriptionMatch(
                    slot: slot, ordinal: Int32(ordinal), matchesOld: change.old.map(one.filter.matches) ?? false,
                    matchesNew: change.new.map(one.filter.matches) ?? false)
                if match.matchesOld || match.matchesNew { found.append(match) }
            }
        }
        return found
    }

    private func randomList(_ random: inout SeededGenerator) throws -> [TableSubscription] {
        let events: [TableSubscription.Events] = [.all, .insert, .update, .delete]
        return try (0..<Int.random(in: 0...4, using: &random)).map { _ in
            try subscription(
                RandomFilters.text(&random), table: Bool.random(using: &random) ? "posts" : "students",
                events: events[Int.random(in: 0..<4, using: &random)])
        }
    }

    /// Returns an insert, an update of one or all columns, or a delete.
    private static func randomRows(_ random: inout SeededGenerator) -> (old: Filter.Row?, new: Filter.Row?) {
        let old = RandomFilters.row(&random)
        var new = Bool.random(using: &random) ? old : RandomFilters.row(&random)
        if let column = new.keys.sorted().randomElement(using: &random) { new[column] = RandomFilters.json(&random) }
        return switch Int.random(in: 0..<4, using: &random) {
        case 0: (nil, new)
        case 1: (old, nil)
        default: (old, new)
        }
    }

    /// Random streams open, change and close. Each change is compared with the evaluation of every subscription.
    @Test func changesMatchTheirSubscriptions_underAnySchedule() {
        let runs = effort(quick: 2_000, full: 5_000, long: 1_000_000)
        let failure = Schedule.failure(seed: randomSeed(), runs: runs) { schedule in
            do {
                return try simulate(schedule)
            } catch {
                return "\(error)"
            }
        }
        #expect(failure == nil, "\(failure ?? "")")
    }

    /// - Returns: how the index differs from the evaluation of every subscription, or nil.
    private func simulate(_ schedule: Schedule) throws -> String? {
        var index = SubscriptionIndex()
        var model: Model = [:]
        for _ in 0..<schedule.count(8...23) {
            schedule.step()
            let slot = Int32(schedule.number(8))
            let tenant: ID<Tenant> = schedule.number(2) == 0 ? "\u{E9}" : "e\u{301}"
            var random = SeededGenerator(seed: UInt64(schedule.number(1 << 20)))
            switch schedule.number(3) {
            case 0:
                index.remove(slot)
                model[slot] = nil
                schedule.tell("stream \(slot) closes")
            default:
                let list = try randomList(&random)
                try index.replace(slot, tenant: tenant, user: ID("u\(slot)"), with: list)
                model[slot] = (tenant, list)
                schedule.tell("stream \(slot) subscribes to \(list.map { "\($0.table) \($0.filter)" })")
            }
            for _ in 0..<4 {
                let (old, new) = Self.randomRows(&random)
                let change = change(old, new, tenant: tenant)
                if let failure = Self.failure(&index, model, change) { return failure }
            }
        }
        schedule.step()
        for slot in model.keys { index.remove(slot) }
        return index.bucketBytes == 0 && index.tableCount == 0 ? nil : "memory is kept without subscriptions"
    }

    private static func failure(_ index: inout SubscriptionIndex, _ model: Model, _ change: RowVersions) -> String? {
        let expected = matches(model, change)
        var found: [SubscriptionMatch] = []
        index.forEachMatch(change) { found.append($0) }
        // The refusal for too many candidates counts each match at least once.
        if !expected.isEmpty, index.forEachMatch(change, candidatesMax: expected.count - 1, { _ in }) {
            return "\(change) has fewer candidates than \(expected.count) matches"
        }
        var asked: [SubscriptionMatch] = []
        for slot in Int32(0)..<8 { index.forEachMatch(change, in: slot) { asked.append($0) } }
        if found != expected || asked != expected { return "\(change) matches \(found) and \(asked), not \(expected)" }
        return nil
    }

    /// The hash table alone, with many hash collisions, compared with a dictionary of lists.
    @Test func buckets_behaveAsADictionaryOfLists() {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        var buckets = KeyBuckets()
        var model: [UInt64: [Int32]] = [:]
        for step in 0..<effort(quick: 20_000, full: 100_000, long: 1_000_000) {
            let hash = UInt64.random(in: 0..<60, using: &random) &* (step.isMultiple(of: 2) ? 1 : 8)
            let number = Int32.random(in: 0..<50, using: &random)
            // The table stores hash 0 as 1.
            let stored = max(hash, 1)
            let isGrowing = (step / 5000).isMultiple(of: 2)
            if Int.random(in: 0..<3, using: &random) > (isGrowing ? 0 : 1) {
                if !model[stored, default: []].contains(number) {
                    buckets.insert(number, under: hash)
                    model[stored, default: []].append(number)
                }
            } else {
                buckets.remove(number, under: hash)
                model[stored]?.removeAll { $0 == number }
            }
            var found: [Int32] = []
            buckets.append(under: hash, to: &found)
            let isRight = Set(found) == Set(model[stored] ?? []) && found.count == model[stored]?.count ?? 0
            // Calls `#expect` only on failure: one call per step would take most of the time.
            if !isRight || buckets.count(under: hash) != found.count { Issue.record("seed \(seed), step \(step)") }
        }
        for (hash, numbers) in model { for number in numbers { buckets.remove(number, under: hash) } }
        #expect(buckets.byteCount == 0)
    }
}

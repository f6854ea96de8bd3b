import TestSupport
import Testing

@testable import Domain
@testable import Values

/// The order of a board, compared with a sorted array (R-CUT-L-1, R-CUT-L-2; R-11).
@Suite(.timed) struct LeaderboardTests {
    /// A naive board: a dictionary that is sorted again for each query.
    private struct PlainBoard {
        var standings: [String: Standing] = [:]

        var sorted: [(user: String, standing: Standing)] {
            standings.map { ($0.key, $0.value) }.sorted { $0.1 < $1.1 }
        }
    }

    /// Between 3 and 1,000,000 distinct scores give ties, long runs and single entries. Boards grow to many blocks,
    /// shrink to a few entries, and grow again.
    @Test(arguments: [3, 40, 1_000_000]) func board_matchesASortedArray(scores: Int64) throws {
        let seed = randomSeed(of: "board_matchesASortedArray(\(scores))")
        var random = SeededGenerator(seed: seed)
        var (board, plain, changes) = (Leaderboard(), PlainBoard(), Int64(0))
        let steps = effort(quick: 6_000, full: 30_000, long: 300_000)
        for step in 0..<steps {
            // Up to 3,000 users; most of them leave in the middle of the run.
            let user = "user-\(Int.random(in: 0..<3000, using: &random))"
            let isMiddle = (steps * 7 / 15..<steps * 11 / 15).contains(step)
            let isLeaving = isMiddle && Int.random(in: 0..<10, using: &random) < 9
            changes += 1
            let standing =
                isLeaving ? nil : Standing(key: .random(in: 0..<scores, using: &random), reached: changes)
            let before = board.set(standing, of: ID(user))
            // Calls `#expect` only on failure: one call per step would take most of the time.
            if before != plain.standings[user] { Issue.record("seed \(seed), step \(step)") }
            plain.standings[user] = standing
            guard step % (steps / 60) == 0 else { continue }
            try #require(board.damage == nil, "seed \(seed), step \(step): \(board.damage ?? "")")
            #expect(board.count == plain.standings.count)
            let first = Int.random(in: -5...board.count + 5, using: &random)
            let all = ranked(plain.sorted)
            let range = (first..<first + 40).clamped(to: 0..<all.count)
            #expect(board.entries(in: first..<(first + 40)) == Array(all[range]), "seed \(seed), step \(step)")
            for _ in 0..<20 {
                let asked = ID<User>("user-\(Int.random(in: 0..<3000, using: &random))")
                let index = all.firstIndex { $0.userId == asked }
                #expect(board.entry(of: asked)?.place == index.map { all[$0].place }, "seed \(seed)")
                let around = index.map { Array(all[max(0, $0 - 3)..<min($0 + 4, all.count)]) } ?? []
                #expect(board.entries(around: asked, 3) == around, "seed \(seed), step \(step)")
            }
        }
    }

    /// A board built from sorted entries equals one built step by step, and behaves the same afterwards.
    @Test func boardBuiltFromSortedEntries_equalsTheInsertedOne() throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        for count in [0, 1, 192, 193, 4_608, 4_609, effort(quick: 9_217, full: 20_000, long: 100_000)] {
            var plain = PlainBoard()
            for index in 0..<count {
                plain.standings["u\(index)"] = Standing(
                    key: .random(in: 0..<500, using: &random), reached: Int64(index + 1))
            }
            var builder = Leaderboard.Builder(countMax: count)
            for entry in plain.sorted { builder.append(ID(entry.user), entry.standing) }
            var board = builder.finish()
            #expect(board.damage == nil)
            #expect(board.count == count)
            for index in 0..<min(count, 2_000) {
                let standing = Standing(key: .random(in: 0..<500, using: &random), reached: Int64(count + index + 1))
                board.set(standing, of: ID("u\(index)"))
                plain.standings["u\(index)"] = standing
            }
            #expect(board.damage == nil, "seed \(seed), \(count)")
            #expect(board.entries(in: 0..<count) == ranked(plain.sorted), "seed \(seed), \(count)")
        }
    }

    private func ranked(_ sorted: [(user: String, standing: Standing)]) -> [Leaderboard.Entry] {
        var entries: [Leaderboard.Entry] = []
        for (index, line) in sorted.enumerated() {
            let isTied = index > 0 && sorted[index - 1].standing.key == line.standing.key
            entries.append(
                .init(
                    userId: ID(line.user), standing: line.standing,
                    place: Place(rank: isTied ? entries[index - 1].place.rank : index + 1, position: index + 1)))
        }
        return entries
    }

    /// R-11: ranks are 1, 2, 2, 4; among equal scores, the earliest comes first.
    @Test func ranks_shareTies_andPositionsDoNot() {
        var board = Leaderboard()
        for (index, (user, score)) in [("a", 30), ("b", 20), ("c", 40), ("d", 30)].enumerated() {
            let key = Challenge.Order.descending.key(of: Int64(score))
            board.set(Standing(key: key, reached: Int64(index + 1)), of: ID(user))
        }
        let entries = board.entries(in: 0..<10)
        #expect(entries.map(\.userId.text) == ["c", "a", "d", "b"])
        #expect(entries.map(\.place.rank) == [1, 2, 2, 4])
        #expect(entries.map(\.place.position) == [1, 2, 3, 4])
        #expect(board.entry(of: ID("nobody")) == nil)
        #expect(board.entries(around: ID("nobody"), 5).isEmpty)
    }

    /// Ids are compared by their bytes: two spellings of é are two users.
    @Test func ids_areBytes() {
        var (board, pending) = (Leaderboard(), PendingChanges())
        let ids = [ID<User>("caf\u{e9}"), ID<User>("cafe\u{301}")]
        for (index, id) in ids.enumerated() {
            pending.set(Standing(key: 0, reached: Int64(index + 1)), of: id, on: board)
        }
        #expect(pending.place(of: Standing(key: 1, reached: 9), on: board) == Place(rank: 3, position: 3))
        for (index, id) in ids.enumerated() { board.set(Standing(key: 0, reached: Int64(index + 1)), of: id) }
        #expect(board.count == 2)
        #expect(ids.map { board.standing(of: $0)?.reached } == [1, 2])
    }

    /// Exactly the users whose rank or position changed are updated.
    @Test func movement_listsEntriesWhosePlaceChanged() {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        var (board, changes) = (Leaderboard(), Int64(0))
        let users = (0..<200).map { ID<User>("u\($0)") }
        for _ in 0..<300 {
            let before = users.map { board.entry(of: $0) }
            _ = board.takeMovement()
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                changes += 1
                let isLeaving = Int.random(in: 0..<8, using: &random) == 0
                let standing = Standing(key: .random(in: 0..<20, using: &random), reached: changes)
                board.set(isLeaving ? nil : standing, of: users.randomElement(using: &random) ?? users[0])
            }
            let movement = SettledMovement(board.takeMovement())
            for (user, old) in zip(users, before) {
                let (new, moved) = (board.entry(of: user), board.entry(of: user, movedBy: movement))
                if new?.place != old?.place, new != nil { #expect(moved == new, "seed \(seed): \(user)") }
                if new == old { #expect(moved == nil, "seed \(seed): \(user) receives nothing") }
            }
        }
    }

    /// The place computed with uncommitted changes equals the place after their commit.
    @Test func pendingChanges_countAsIfCommitted() {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        var (board, changes) = (Leaderboard(), Int64(0))
        for _ in 0..<400 {
            var (pending, after) = (PendingChanges(), board)
            for _ in 0..<Int.random(in: 1...12, using: &random) {
                changes += 1
                let user = ID<User>("u\(Int.random(in: 0..<60, using: &random))")
                let standing = Standing(key: .random(in: 0..<12, using: &random), reached: changes)
                let isLeaving = Int.random(in: 0..<6, using: &random) == 0
                pending.set(isLeaving ? nil : standing, of: user, on: board)
                after.set(isLeaving ? nil : standing, of: user)
                #expect(pending.place(of: standing, on: board) == after.place(of: standing), "seed \(seed)")
            }
            // The group of changes may be rolled back.
            if Bool.random(using: &random) { board = after }
        }
    }

    /// The memory per entry that the limits assume, for a board that grew from empty.
    @Test func entries_areCompact() {
        var board = Leaderboard()
        var random = SeededGenerator(seed: 7)
        let count = effort(quick: 25_000, full: 100_000, long: 1_000_000)
        for index in 0..<count {
            let standing = Standing(key: .random(in: 0..<1_000_000, using: &random), reached: Int64(index + 1))
            board.set(standing, of: ID("01hzy7k3m9qv5w2x8r4t6\(10_000_000 + index)"))
        }
        #expect(board.count == count)
        #expect(board.damage == nil)
        // The id takes 29 of these bytes; arrays that have just grown are up to half empty.
        #expect(board.bytes / board.count <= 110, "\(board.bytes / board.count) bytes per entry")
    }
}

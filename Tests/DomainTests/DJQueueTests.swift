import TestSupport
import Testing

@testable import Domain
@testable import Values

/// The order of a shop's tracks and their vote counts (R-CUT-D-1 to R-CUT-D-5, R-9 and R-10).
@Suite(.timed) struct DJQueueTests {
    private static func item(
        _ name: String, up: Int = 0, down: Int = 0, at seconds: Int64 = 0
    ) -> DJQueueItem {
        DJQueueItem(
            id: ID("item-\(name)"),
            track: DJTrack(trackId: ID(name), trackName: name, artistName: "x", albumArt: nil), addedBy: ID("u1"),
            addedAt: Timestamp(microseconds: seconds * 1_000_000), tally: DJTally(upvotes: up, downvotes: down))
    }

    private static func names(_ queue: DJQueue) -> [String] { queue.items.map(\.track.trackId.text) }

    /// R-10: descending score, then time of addition, then the bytes of the track's id.
    @Test func order_isScore_thenAddition_thenId() {
        let items = [
            Self.item("late", up: 2, at: 9), Self.item("low", up: 1, down: 3, at: 1), Self.item("b", up: 2, at: 5),
            Self.item("Z", up: 2, at: 5), Self.item("top", up: 9, down: 1, at: 10), Self.item("é", up: 2, at: 5),
            Self.item("e\u{301}", up: 2, at: 5),
        ]
        let queue = DJQueue(DJSession(shopId: ID("s1")), items: items.shuffled())
        // Canonically equivalent ids are different ids, ordered by their bytes, as in the databases.
        #expect(
            Self.names(queue).map { Array($0.utf8) }
                == ["top", "Z", "b", "e\u{301}", "é", "late", "low"].map { Array($0.utf8) })
        #expect(queue.current == nil)
        #expect(queue.next?.track.trackId.text == "top")
        #expect(queue.position(of: ID("item-low")) == 7)
        #expect(queue.position(of: ID("other")) == nil)
    }

    @Test func currentTrack_isPinned_withAnyScore() {
        var session = DJSession(shopId: ID("s1"), isActive: true)
        session.currentItem = ID("item-worst")
        let items = [Self.item("a", up: 5), Self.item("worst", down: 5), Self.item("b", up: 1)]
        let queue = DJQueue(session, items: items)
        #expect(Self.names(queue) == ["worst", "a", "b"])
        #expect(queue.current?.track.trackId.text == "worst")
        #expect(queue.next?.track.trackId.text == "a")
        session.currentItem = ID("item-gone")
        #expect(DJQueue(session, items: items).current == nil)
    }

    /// For any votes the order is total and independent of the initial arrangement. A vote moves only its own track.
    @Test func order_isTotalAndStable() {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            var items = (0..<Int.random(in: 1...30, using: &random)).map { index in
                Self.item(
                    "t\(index)", up: Int.random(in: 0...3, using: &random), down: Int.random(in: 0...3, using: &random),
                    at: Int64.random(in: 0...3, using: &random))
            }
            let session = DJSession(shopId: ID("s1"), currentItem: items.randomElement(using: &random)?.id)
            let before = DJQueue(session, items: items)
            #expect(DJQueue(session, items: items.shuffled(using: &random)) == before, "seed \(seed)")
            for (left, right) in zip(before.items.dropFirst(), before.items.dropFirst(2)) {
                #expect(left.place < right.place, "seed \(seed)")
                #expect(!(right.place < left.place), "seed \(seed)")
            }
            let voted = Int.random(in: items.indices, using: &random)
            items[voted].tally = items[voted].tally.replacing(.none, by: Bool.random(using: &random) ? .up : .down)
            let id = items[voted].id
            let after = DJQueue(session, items: items)
            #expect(
                after.items.map(\.id).filter { $0 != id } == before.items.map(\.id).filter { $0 != id }, "seed \(seed)")
        }
    }

    /// R-CUT-D-3: one vote per user. After any change of a vote, the counts equal a recount.
    @Test func tally_isTheRecount_afterAnyVotes() {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        var votes: [Int: DJVote] = [:]
        var tally = DJTally()
        for step in 0..<20_000 {
            let user = Int.random(in: 0..<50, using: &random)
            let vote = DJVote.allCases[Int.random(in: 0..<3, using: &random)]
            tally = tally.replacing(votes[user] ?? .none, by: vote)
            votes[user] = vote
            let up = votes.values.count { $0 == .up }
            let down = votes.values.count { $0 == .down }
            #expect(tally == DJTally(upvotes: up, downvotes: down), "seed \(seed), step \(step)")
            #expect(tally.score == up - down)
        }
    }

    /// R-CUT-D-5; the item is ordered by the same timestamp that is published.
    @Test func addedTrack_hasOneVote_andTheMomentThatIsPublished() throws {
        let track = DJTrack(trackId: ID("t"), trackName: "t", artistName: "x", albumArt: nil)
        let item = DJQueueItem.added(track, as: ID("i"), by: ID("u1"), at: Timestamp(microseconds: 1_234_567))
        #expect(item.tally == DJTally(upvotes: 1))
        #expect(item.tally.score == 1)
        #expect(item.addedAt == Timestamp(rfc3339: item.addedAt.rfc3339))
    }

    @Test func sides_areStored_andReadBack() {
        for vote in DJVote.allCases { #expect(DJVote(side: vote.side) == vote) }
        for side in [0, 2, -2] { #expect(DJVote(side: side) == nil) }
    }

    @Test func updates_haveABudgetForEachSecond() {
        var budget = DJUpdateBudget(second: 0, publishedCount: 0)
        let now = Timestamp(microseconds: 7_900_000)
        var updates = 0
        for _ in 0..<100 where budget.take(at: now) { updates += 1 }
        #expect(updates == DJLimits.updatesPerSecondMax)
        #expect(budget.second == 7)
        let isRenewed = budget.take(at: Timestamp(microseconds: 8_000_000))
        #expect(isRenewed)
        #expect(budget.publishedCount == 1)
        // Replicas whose clocks differ share the budget of the later second.
        for seconds: Int64 in [7, 8, 7, 8] { _ = budget.take(at: Timestamp(microseconds: seconds * 1_000_000)) }
        #expect(budget == DJUpdateBudget(second: 8, publishedCount: 5))
        // A clock that was an hour ahead does not silence the shop for an hour.
        var early = DJUpdateBudget(second: 3600, publishedCount: DJLimits.updatesPerSecondMax)
        let isHeard = early.take(at: now)
        #expect(isHeard)
        #expect(early.second == 7)
    }

    /// R-CUT-D-4: the JSON has vote counts but no voters, and a user's own vote only when that user reads it.
    @Test func json_hasTheDocumentsMembers() throws {
        var session = DJSession(shopId: ID("s1"), isActive: true, startedAt: Timestamp(microseconds: 0), version: 3)
        session.currentItem = ID("item-a")
        session.currentSince = Timestamp(microseconds: 0)
        let queue = DJQueue(session, items: [Self.item("a", up: 2, down: 1)])
        let track = #""trackId":"a","trackName":"a","artistName":"x","albumArt":null"#
        let moment = #""1970-01-01T00:00:00.000Z""#
        let counts =
            #""addedBy":"u1","upvotes":2,"downvotes":1,"score":1,"addedAt":"1970-01-01T00:00:00.000Z","position":1"#
        func json(_ vote: String) -> String {
            #"{"shopId":"s1","isActive":true,"currentTrack":{\#(track),"startedAt":\#(moment)},"#
                + #""queue":[{\#(track),\#(counts)\#(vote)}],"startedAt":\#(moment),"version":3,"epoch":"k3f9ab"}"#
        }
        func written(_ votes: [ID<DJQueueItem>: DJVote]?) -> String {
            String(decoding: queue.json(votes: votes, epoch: "k3f9ab"), as: UTF8.self)
        }
        #expect(written(nil) == json(""))
        #expect(written([:]) == json(#","userVote":"none""#))
        #expect(written([ID("item-a"): .down]) == json(#","userVote":"down""#))
    }

    /// The longest possible queue, in which JSON escapes every byte, fits the buffers of a stream (64 KiB in the
    /// service, 16 KiB in the kernel).
    @Test func longestQueue_fitsOneStream() {
        func long(_ count: Int) -> String { String(repeating: "\"", count: count) }
        let items = (0..<DJLimits.tracksMax).map { index in
            DJQueueItem(
                id: ID("i\(index)"),
                track: DJTrack(
                    trackId: ID(long(Fields.idBytesMax)), trackName: long(DJLimits.nameBytesMax),
                    artistName: long(DJLimits.nameBytesMax),
                    albumArt: String(repeating: "a", count: DJLimits.albumArtBytesMax)),
                addedBy: ID(long(Fields.idBytesMax)), addedAt: Timestamp(microseconds: 0),
                tally: DJTally(upvotes: 1_000_000, downvotes: 1_000_000))
        }
        let queue = DJQueue(DJSession(shopId: ID("s1"), isActive: true), items: items)
        let bytes = queue.json(votes: [:], epoch: "k3f9ab").count
        #expect(bytes < 80 * 1024, "\(bytes)")
    }

    @Test(arguments: [
        (#"{}"#, ["/trackId", "/trackName", "/artistName"]),
        (#"{"trackId":"t","trackName":"n","artistName":"a","albumArt":"http://x/y"}"#, ["/albumArt"]),
        (#"{"trackId":"t","trackName":"n","artistName":"a","albumArt":"https://"}"#, ["/albumArt"]),
        (#"{"trackId":"t","trackName":"n","artistName":"a","albumArt":"https://x/<script>"}"#, ["/albumArt"]),
        (#"{"trackId":"t","trackName":"n\u0007","artistName":"a"}"#, ["/trackName"]),
        (#"{"trackId":"","trackName":7,"artistName":"a","album":"x"}"#, ["/trackId", "/trackName", "/album"]),
    ])
    func badTrack_isNamedByItsPointers(_ body: String, _ pointers: [String]) {
        let failure = #expect(throws: Failure.self) {
            var fields = try Fields(Array(body.utf8))
            _ = DJTrack(reading: &fields)
            try fields.finish()
        }
        #expect(Set(failure?.fields.map(\.pointer) ?? []) == Set(pointers), "\(body)")
    }

    @Test func longTexts_areRefused_atTheirLimits() throws {
        func read(name: Int, art: Int) throws {
            var fields = Fields([
                "trackId": .string("t"), "trackName": .string(String(repeating: "n", count: name)),
                "artistName": .string("a"), "albumArt": .string("https://" + String(repeating: "a", count: art - 8)),
            ])
            _ = DJTrack(reading: &fields)
            try fields.finish()
        }
        try read(name: DJLimits.nameBytesMax, art: DJLimits.albumArtBytesMax)
        #expect(throws: Failure.self) { try read(name: DJLimits.nameBytesMax + 1, art: 20) }
        #expect(throws: Failure.self) { try read(name: 1, art: DJLimits.albumArtBytesMax + 1) }
    }
}

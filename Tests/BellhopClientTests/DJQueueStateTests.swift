import TestSupport
import Testing

@testable import BellhopClient

/// A shop's music as an app stores it (R-CUT-D-1): the service's state wins, and the user's own actions show
/// immediately.
@Suite(.timed) struct DJQueueStateTests {
    private static func item(
        _ id: String, up: Int64 = 1, down: Int64 = 0, second: Int = 0, vote: String? = nil, version: Int64 = 2
    ) -> JSON {
        var members: [String: JSON] = [
            "shopId": "s1", "trackId": .string(id), "trackName": .string(id), "artistName": "x", "albumArt": nil,
            "addedBy": "u1", "upvotes": .integer(up), "downvotes": .integer(down), "score": .integer(up - down),
            "addedAt": .string("2026-01-10T20:00:0\(second).000Z"), "position": 1, "version": .integer(version),
        ]
        if let vote { members["userVote"] = .string(vote) }
        return .object(members)
    }

    private static func session(_ items: [JSON], current: String? = nil, version: Int64 = 1) -> JSON {
        [
            "shopId": "s1", "isActive": true, "queue": .array(items), "startedAt": nil, "version": .integer(version),
            "currentTrack": current.map { ["trackId": .string($0)] } ?? .null,
        ]
    }

    private static func counts(_ id: String, up: Int64, down: Int64, version: Int64) -> JSON {
        [
            "shopId": "s1", "trackId": .string(id), "upvotes": .integer(up), "downvotes": .integer(down),
            "score": .integer(up - down), "position": 1, "version": .integer(version),
        ]
    }

    /// Returns the queue after an event; nil if the event changed nothing.
    private static func merged(_ queue: DJQueueState, _ name: String, _ json: JSON) -> DJQueueState? {
        var queue = queue
        return queue.merge(ServerSentEvent(id: "", name: name, data: json.text)) ? queue : nil
    }

    private static func queue() throws -> DJQueueState {
        let items = [item("a", up: 3), item("b", up: 2, second: 1, vote: "up"), item("c", up: 2, second: 2)]
        return try #require(merged(DJQueueState(shopId: "s1"), "dj:session", session(items)))
    }

    private static func ids(_ queue: DJQueueState) -> [String] { queue.tracks.map(\.trackId) }

    private static func track(_ id: String, in queue: DJQueueState) throws -> DJQueueState.Track {
        try #require(queue.tracks.first { $0.trackId == id })
    }

    @Test func events_leaveTheQueueInTheServicesOrder() throws {
        var queue = try Self.queue()
        #expect(Self.ids(queue) == ["a", "b", "c"])
        #expect(queue.isActive)
        #expect(queue.currentTrackId == nil)
        queue = try #require(Self.merged(queue, "track:added", Self.item("d", up: 2)))
        #expect(Self.ids(queue) == ["a", "d", "b", "c"])
        queue = try #require(Self.merged(queue, "dj:queue_update", Self.counts("c", up: 5, down: 1, version: 3)))
        #expect(Self.ids(queue) == ["c", "a", "d", "b"])
        queue = try #require(Self.merged(queue, "track:playing", ["shopId": "s1", "trackId": "b", "version": 4]))
        #expect(Self.ids(queue) == ["b", "c", "a", "d"])
        #expect(queue.tracks[0].vote == .up)
        queue = try #require(
            Self.merged(queue, "track:removed", ["shopId": "s1", "trackId": "b", "reason": "played", "version": 5]))
        queue = try #require(Self.merged(queue, "track:playing", ["shopId": "s1", "trackId": nil, "version": 5]))
        #expect(Self.ids(queue) == ["c", "a", "d"])
        #expect(queue.currentTrackId == nil)
    }

    @Test func irrelevantEvents_changeNothing() throws {
        let queue = try Self.queue()
        for (name, json): (String, JSON) in [
            ("track:removed", ["shopId": "s2", "trackId": "a", "version": 9]),
            ("queue:update", ["shopId": "s1", "trackId": "a", "version": 9]), ("dj:session", "no session"),
            ("dj:session", ["shopId": "s1", "version": 9]), ("track:removed", ["shopId": "s1", "trackId": "a"]),
            // Events published before the session was read, but received after it.
            ("track:removed", ["shopId": "s1", "trackId": "a", "version": 0]),
            ("dj:session", Self.session([], version: 0)),
            ("track:added", ["shopId": "s1", "trackId": "x", "version": 9]),
        ] { #expect(Self.merged(queue, name, json) == nil, "\(name) \(json)") }
    }

    /// R-CUT-D-1, R-CUT-D-3: a vote shows immediately, switches sides, and reverts when it is refused.
    @Test func vote_isShownAtOnce_andRevertedIfRefused() throws {
        var queue = try Self.queue()
        let untouched = queue
        queue.show(.up, on: "c")
        #expect(Self.ids(queue) == ["a", "c", "b"])
        #expect(queue.tracks[1].upvotes == 3)
        #expect(queue.tracks[1].vote == .up)
        queue.show(.down, on: "c")
        #expect(queue.tracks[2].upvotes == 2)
        #expect(queue.tracks[2].downvotes == 1)
        #expect(queue.tracks[2].score == 1)
        // Another user votes meanwhile. The published counts stay when the own vote reverts.
        queue = try #require(Self.merged(queue, "dj:queue_update", Self.counts("c", up: 3, down: 0, version: 2)))
        let isTaken = queue.merge(track: ["type": "urn:bellhop:problem:dj.not_present", "status": 403])
        #expect(!isTaken)
        queue.withdraw("c")
        let track = try Self.track("c", in: queue)
        #expect(track.upvotes == 3)
        #expect(track.downvotes == 0)
        #expect(track.vote == .none)
        queue.show(.none, on: "b")
        #expect(try Self.track("b", in: queue).upvotes == 1)
        queue.withdraw("b")
        queue.show(.up, on: "gone")
        #expect(try Self.track("b", in: queue) == Self.track("b", in: untouched))
    }

    /// An answer confirms the vote. If the counts of a later vote arrived first, they stay.
    @Test func answer_confirms_andNewerCountsStay() throws {
        var queue = try Self.queue()
        queue.show(.up, on: "c")
        queue = try #require(Self.merged(queue, "dj:queue_update", Self.counts("c", up: 7, down: 0, version: 9)))
        var isTaken = queue.merge(track: Self.item("c", up: 3, second: 2, vote: "up", version: 8))
        var track = try Self.track("c", in: queue)
        #expect(isTaken)
        #expect(track.upvotes == 7)
        #expect(track.vote == .up)
        isTaken = queue.merge(track: Self.item("c", up: 6, second: 2, vote: "none", version: 10))
        track = try Self.track("c", in: queue)
        #expect(isTaken)
        #expect(track.upvotes == 6)
        #expect(track.vote == .none)
        // Events for all users contain no own vote, and leave it unchanged.
        queue = try #require(Self.merged(queue, "dj:session", Self.session([Self.item("b", up: 4)], version: 11)))
        #expect(queue.tracks.map(\.vote) == [.up])
        #expect(queue.tracks.map(\.upvotes) == [4])
    }

    /// data of another epoch is always newer, as a whole or as a change.
    @Test func anotherEpoch_replacesAlways() throws {
        func restored(_ json: JSON) -> JSON {
            var members = json.object ?? [:]
            members["epoch"] = "b"
            return .object(members)
        }
        var queue = try Self.queue()
        queue = try #require(Self.merged(queue, "dj:queue_update", Self.counts("c", up: 9, down: 0, version: 800)))
        queue = try #require(Self.merged(queue, "dj:session", Self.session([Self.item("c", up: 9)], version: 800)))
        let late = Self.counts("c", up: 4, down: 0, version: 3)
        #expect(Self.merged(queue, "dj:queue_update", late) == nil)
        let counted = try #require(Self.merged(queue, "dj:queue_update", restored(late)))
        #expect(try Self.track("c", in: counted).score == 4)
        // An unrelated event leaves everything unchanged, including the epoch.
        #expect(Self.merged(queue, "queue:update", restored(late)) == nil)
        let session = restored(Self.session([Self.item("c", up: 2)], version: 1))
        queue = try #require(Self.merged(queue, "dj:session", session))
        #expect(try Self.track("c", in: queue).score == 2)
        #expect(Self.merged(queue, "dj:session", restored(Self.session([], version: 0))) == nil)
    }
}

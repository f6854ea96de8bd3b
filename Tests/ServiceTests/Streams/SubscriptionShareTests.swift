import BellhopClient
import MicroHTTP
import TestSupport
import Testing

@testable import Service

/// The filters that every change of a table must evaluate are a shared budget, which no single user can exhaust.
@Suite(.timed) struct SubscriptionShareTests {
    /// As many filters without an index as one stream may have.
    private static let everything: [JSON] = (0..<100).map { number in
        ["table": "notes", "filter": .string(number < 10 ? "body=like.%word\(number)%" : "body=gt.x\(number)")]
    }

    /// The places of the mistakes in an answer.
    private static func places(_ answer: ServiceAnswer) -> [String?]? {
        answer.json["errors"].array?.map { $0["pointer"].string }
    }

    /// A client that leaves out the subscriptions named by the answer can have the rest.
    @Test func refusedSubscriptions_areNamedOneByOne() async throws {
        let probe = try FeedProbe(["shards": "1"])
        let stream = try await probe.listen(as: "ann")
        let ids = (0..<1000).map { "i\($0)" }.joined(separator: ",")
        let large: [JSON] = (0..<12).map {
            ["id": .string("s\($0)"), "table": "notes", "filter": .string("id=in.(\(ids))")]
        }
        let full = try await stream.replaceSubscriptions(large)
        #expect(full.status == 422)
        #expect(Self.places(full) == ["/tables/10/filter", "/tables/11/filter"], "\(full.json)")
        #expect(try await stream.replaceSubscriptions(Array(large[..<10])).status == 200)
        let searches: [JSON] = (0..<11).map { ["table": "notes", "filter": .string("body=like.%word\($0)%")] }
        #expect(Self.places(try await stream.replaceSubscriptions(searches)) == ["/tables/10/filter"])
        let unknown = try await stream.replaceSubscriptions([
            ["table": "nothing"], ["table": "notes"], ["table": "notes", "schema": "other"],
            ["table": "notes", "filter": "id=nonsense"],
        ])
        #expect(unknown.status == 422)
        #expect(Self.places(unknown) == ["/tables/0/table", "/tables/2/table", "/tables/3/filter"], "\(unknown.json)")
    }

    @Test func oneUsersStreams_leaveRoomForOthersFilters() async throws {
        let probe = try FeedProbe(["shards": "1"])
        var streams: [StreamListener] = []
        var answers: [ServiceAnswer] = []
        for _ in 0..<10 {
            let stream = try await probe.listen(as: "ann")
            streams.append(stream)
            answers.append(try await stream.replaceSubscriptions(Self.everything))
        }
        #expect(answers.map(\.status) == [200] + Array(repeating: 429, count: 9))
        #expect(answers[1].refusal == "429 subscriptions.too_many")
        #expect(answers[1][header: "Retry-After"] == "30")
        let other = try await probe.listen(as: "ben")
        let answer = try await other.replaceSubscriptions(Self.everything)
        #expect(answer.status == 200, "\(answer.problem)")
        // Indexed filters do not count, and released filters free their share.
        try await streams[1].subscribe([["table": "notes", "filter": "id=eq.n1"]])
        try await streams[0].subscribe([])
        try await streams[1].subscribe(Self.everything)
    }

    /// The subscriptions are replaced before the states of new topics are read. Without a free worker, the stream is
    /// asked to resync, and the request succeeds, because it was performed.
    @Test func replacedSubscriptions_succeed_whenAllWorkersAreBusy() async throws {
        let probe = try FeedProbe()
        let service = probe.service
        let stream = try await probe.listen(as: "ann")
        let id = try #require(stream.ready.json["streamId"].string)
        let gate = Gate()
        defer { gate.open() }
        while service.app.workers.submit({ gate.wait() }) {}
        let tables = try await stream.replaceSubscriptions([["table": "notes"]])
        #expect(tables.status == 200 && tables.json["tables"].array?.count == 1, "\(tables.text)")
        let topics = try await service.call(
            "PUT", "/v1/streams/\(id)/subscriptions", as: .user("ann"), ["topics": ["queue:s1"]])
        #expect(topics.status == 200 && topics.json["topics"].array?.contains("queue:s1") == true, "\(topics.text)")
        #expect(try await stream.next("stream:resync").json["reason"].string == "overflow")
    }
}

import Foundation

/// Writes made while there is no network, sent in order when it is back, each exactly once (`VIS NFR-2.3`,
/// `CUT N-3`).
///
/// Each write carries an `Idempotency-Key` of its own from the start, so that one whose answer got lost is not done
/// twice by being sent again.
public actor OfflineQueue {
    /// A write that waits.
    public struct Write: Sendable, Codable, Hashable {
        public let method: String
        public let path: String
        public let body: JSON?
        public let idempotencyKey: String
    }

    /// What became of the writes of one ``flush()``.
    public struct Outcome: Sendable {
        /// Answered by the service, in order; a refusal (409, 422 …) is an answer.
        public let answered: [(write: Write, answer: ServiceAnswer)]
        /// Still waiting, because the service was out of reach or asked to come later.
        public let waitingCount: Int
    }

    private let client: BellhopClient
    private let countMax: Int
    /// What waits, oldest first; store it to survive the app's own end.
    public private(set) var writes: [Write]
    private var isFlushing = false

    /// - Parameter countMax: a phone that stays offline must not collect writes without end; further ones are refused.
    public init(client: BellhopClient, writes: [Write] = [], countMax: Int = 1000) {
        self.client = client
        self.writes = writes
        self.countMax = countMax
    }

    /// Notes a write; false where the queue is full.
    public func add(_ method: String, _ path: String, _ body: JSON? = nil) -> Bool {
        guard writes.count < countMax else { return false }
        let key = UUID().uuidString.lowercased()
        writes.append(Write(method: method, path: path, body: body, idempotencyKey: key))
        return true
    }

    /// Sends what waits, until all of it is answered or the service is out of reach.
    public func flush() async -> Outcome {
        var answered: [(write: Write, answer: ServiceAnswer)] = []
        // Two flushes at once would send the same write twice side by side; the first one sends what the second would.
        guard !isFlushing else { return Outcome(answered: [], waitingCount: writes.count) }
        isFlushing = true
        defer { isFlushing = false }
        while let write = writes.first {
            let headers = ["Idempotency-Key": write.idempotencyKey]
            guard let answer = try? await client.send(write.method, write.path, write.body, headers: headers),
                answer.status < 500, ![401, 408, 425, 429].contains(answer.status)
            else { break }
            writes.removeFirst()
            answered.append((write, answer))
        }
        return Outcome(answered: answered, waitingCount: writes.count)
    }
}

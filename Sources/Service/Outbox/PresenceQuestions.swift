import Values

/// What replicas notify one another about the streams of users.
enum PresenceNotice: Equatable {
    static let channel: StaticString = "bellhop_presence"
    /// PostgreSQL takes 8,000 bytes.
    private static let bytesMax = 7_000

    case question(id: String, from: String, [Owner])
    /// The places of the users with a stream on the replica that answers.
    case answer(id: String, from: String, present: [Int])

    /// The parts are lines, because no id has control characters.
    var payload: String {
        switch self {
        case .question(let id, let replica, let owners):
            (["?", id, replica] + owners.flatMap { [$0.tenant.text, $0.userId.text] }).joined(separator: "\n")
        case .answer(let id, let replica, let present):
            (["!", id, replica] + present.map { "\($0)" }).joined(separator: "\n")
        }
    }

    init?(payload: String) {
        let lines = payload.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard lines.count >= 3 else { return nil }
        switch lines[0] {
        case "?" where !lines.count.isMultiple(of: 2):
            let owners = stride(from: 3, to: lines.count, by: 2).map {
                Owner(tenant: ID(lines[$0]), userId: ID(lines[$0 + 1]))
            }
            self = .question(id: lines[1], from: lines[2], owners)
        case "!": self = .answer(id: lines[1], from: lines[2], present: lines[3...].compactMap { Int($0) })
        default: return nil
        }
    }

    /// Returns the lanes in parts whose users fit into one notification.
    static func parts(of lanes: [Outbox.Due]) -> [[Outbox.Due]] {
        var (parts, bytes) = ([[Outbox.Due]](), bytesMax)
        for lane in lanes {
            let count = (lane.owner?.tenant.text.utf8.count ?? 0) + (lane.owner?.userId.text.utf8.count ?? 0) + 2
            if bytes + count > bytesMax { (parts, bytes) = (parts + [[]], 0) }
            parts[parts.count - 1].append(lane)
            bytes += count
        }
        return parts
    }
}

/// The questions of one replica whether the users of early messages have a stream anywhere.
///
/// A question is settled once all replicas have answered that listened within the last seconds, or one has a stream. A
/// replica whose connection is interrupted does not listen for a moment, and still has streams. Without all answers, the
/// messages wait as long as every replica may take to look for itself (``OutboxLimits/presenceSeconds``).
struct PresenceQuestions {
    private struct Question {
        let lanes: [Outbox.Due]
        let askedAt: Duration
        var answers: Set<String> = []
        var present: Set<Int> = []
    }

    private static let lifetime: Duration = .seconds(OutboxLimits.presenceSeconds)
    private static let countPause: Duration = .seconds(1)

    private var questions: [String: Question] = [:]
    /// The lanes of the questions that are not settled.
    private var asked: [Int: Duration] = [:]
    /// How many replicas listened, and when they were counted.
    private var counts: [(replicas: Int, at: Duration)] = []

    /// Forgets what is too old to be answered.
    mutating func forget(before uptime: Duration) {
        questions = questions.filter { $0.value.askedAt + Self.lifetime > uptime }
        asked = asked.filter { $0.value + Self.lifetime > uptime }
        counts = counts.filter { $0.at + Self.lifetime > uptime }
    }

    /// Whether the replicas are to be counted again, also without a question.
    func isCountDue(at uptime: Duration) -> Bool { counts.last.map { $0.at + Self.countPause <= uptime } ?? true }

    mutating func count(_ replicas: Int, at uptime: Duration) { counts.append((replicas, uptime)) }

    /// Returns the lanes to ask about: those that wait for nothing but an answer.
    func unasked(_ lanes: [Outbox.Due]) -> [Outbox.Due] {
        lanes.filter { asked[$0.id] == nil && $0.owner != nil && !$0.isPaused }
    }

    mutating func ask(_ id: String, about lanes: [Outbox.Due], at uptime: Duration) {
        questions[id] = Question(lanes: lanes, askedAt: uptime)
        for lane in lanes { asked[lane.id] = uptime }
    }

    mutating func answer(_ id: String, by replica: String, present: [Int]) {
        questions[id]?.answers.insert(replica)
        questions[id]?.present.formUnion(present)
    }

    /// Returns the lanes whose questions are settled, and ends these.
    mutating func settled() -> (present: [Outbox.Due], absent: [Outbox.Due]) {
        var (present, absent): ([Outbox.Due], [Outbox.Due]) = ([], [])
        let replicas = counts.map(\.replicas).max() ?? 0
        for (id, question) in questions where replicas > 0 && question.answers.count >= replicas {
            questions[id] = nil
            for (place, lane) in question.lanes.enumerated() {
                asked[lane.id] = nil
                if question.present.contains(place) { present.append(lane) } else { absent.append(lane) }
            }
        }
        return (present, absent)
    }
}

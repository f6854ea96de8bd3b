import Foundation

/// What a feature decides: a pure function of its state and of what has happened, with no I/O and no clock, so that the
/// vectors in `Tests/Fixtures/Client` hold JavaScript and Swift to one behaviour.
///
/// Encoded, it is its state by the names of the vectors.
public protocol FeatureMachine: Sendable, Encodable {
    /// - Parameter now: milliseconds since 1970.
    mutating func receive(_ input: FeatureInput, now: Int) -> [FeatureAction]
}

/// What a feature's machine is told.
public enum FeatureInput: Sendable, Hashable {
    /// Once, first.
    case start(user: String?, isLive: Bool)
    /// Of the stream, or told by another feature; the id is empty where the event is not replayed.
    case event(name: String, data: JSON, id: String)
    /// To an action of that name; status 0 where none came.
    case answer(as: String, status: Int, body: JSON, retryAfterSeconds: Int?)
    case connection(isLive: Bool)
    case lifecycle(isForeground: Bool)
    /// The first one who shows it has come, or the last one has gone.
    case watch(isWatched: Bool)
    /// That an action has set.
    case timer(String)
    /// Somebody else has signed in, or nobody is any more.
    case user(String?, isSignedIn: Bool)
    /// Of the user or the app, with what it takes.
    case command(String, JSON)
}

/// What is to be done.
public enum FeatureAction: Sendable, Hashable {
    /// Answered now or not at all.
    case fetch(path: String, as: String)
    /// Through the outbox, which survives being offline.
    case send(method: String, path: String, body: JSON?, headers: [String: String], as: String)
    /// One of each name; nil stops it.
    case timer(name: String, at: Int?)
    /// By the app's player, once for each key.
    case play(haptic: JSON, sound: Bool, key: String)
    /// To the app and the other features.
    case tell(name: String, data: JSON)
    /// The topics of this feature, in place of those before.
    case subscribe(topics: [String])
    /// The rows of this feature, in place of those before; behind the id if there is one.
    case tables([JSON], lastEventId: String?, as: String)

    static func send(_ method: String, _ path: String, _ body: JSON? = nil, as name: String) -> FeatureAction {
        .send(method: method, path: path, body: body, headers: [:], as: name)
    }
}

extension FeatureMachine {
    /// Begins anew for another user: with what a start asks for, if somebody is signed in.
    mutating func begin(for user: String?, isSignedIn: Bool, now: Int) -> [FeatureAction] {
        isSignedIn ? receive(.start(user: user, isLive: false), now: now) : []
    }
}

extension JSON {
    /// Whether it is a truthful flag, or anything but nothing.
    var isPresent: Bool { !isNull && self != .bool(false) }

    /// With members in place of its own of the same names.
    func with(_ changes: [String: JSON]) -> JSON {
        .object((object ?? [:]).merging(changes) { _, new in new })
    }

    func without(_ names: Set<String>) -> JSON {
        .object((object ?? [:]).filter { !names.contains($0.key) })
    }

    var strings: [String] { (array ?? []).compactMap(\.string) }
}

extension String {
    /// As one segment of a path, encoded as `encodeURIComponent` of JavaScript does it.
    var pathSegment: String {
        let unreserved = CharacterSet(charactersIn: "-_.!~*'()").union(.asciiLetters)
        return addingPercentEncoding(withAllowedCharacters: unreserved) ?? self
    }
}

extension CharacterSet {
    fileprivate static let asciiLetters = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
}

/// Moments as the service writes them: RFC 3339 in UTC with milliseconds.
extension Moment {
    private static let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    static func text(_ milliseconds: Int) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000).formatted(style)
    }

    /// Nil for what is no moment.
    static func milliseconds(_ text: String?) -> Int? {
        guard let text, let date = try? style.parse(text) else { return nil }
        return Int((date.timeIntervalSince1970 * 1000).rounded())
    }
}

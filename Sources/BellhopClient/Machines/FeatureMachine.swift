import Foundation

/// The logic of a feature: a pure function of its state and its input, without I/O and without a clock. The vectors in
/// `Tests/Fixtures/Client` hold JavaScript and Swift to the same behaviour.
///
/// Encoding it yields its state with the names that the vectors use.
public protocol FeatureMachine: Sendable, Encodable {
    /// - Parameter now: milliseconds since 1970.
    mutating func receive(_ input: FeatureInput, now: Int) -> [FeatureAction]
}

/// An input to a feature's machine.
public enum FeatureInput: Sendable, Hashable {
    /// Sent once, as the first input.
    case start(user: String?, isLive: Bool)
    /// An event of the stream or of another feature. The id is empty if the event is not replayed.
    case event(name: String, data: JSON, id: String)
    /// The answer to the action of that name; status 0 if there was no answer.
    case answer(as: String, status: Int, body: JSON, retryAfterSeconds: Int?)
    case connection(isLive: Bool)
    case lifecycle(isForeground: Bool)
    /// The first viewer appeared, or the last one left.
    case watch(isWatched: Bool)
    /// A timer that an action started has fired.
    case timer(String)
    /// Another user signed in, or the user signed out.
    case user(String?, isSignedIn: Bool)
    /// A command of the user or the app, with its parameters.
    case command(String, JSON)
}

/// An action that a machine requests.
public enum FeatureAction: Sendable, Hashable {
    /// Sends a request now; if it fails, it is not kept for later.
    case fetch(path: String, as: String)
    /// Sends a write through the outbox, which keeps it while the device is offline.
    case send(method: String, path: String, body: JSON?, headers: [String: String], as: String)
    /// Sets the timer of that name; nil stops it.
    case timer(name: String, at: Int?)
    /// Plays with the app's player, once per key.
    case play(haptic: JSON, sound: Bool, key: String)
    /// Emits an event to the app and to the other features.
    case tell(name: String, data: JSON)
    /// Replaces the topics of this feature.
    case subscribe(topics: [String])
    /// Replaces the row subscriptions of this feature, resuming after the event id if there is one.
    case tables([JSON], lastEventId: String?, as: String)

    static func send(_ method: String, _ path: String, _ body: JSON? = nil, as name: String) -> FeatureAction {
        .send(method: method, path: path, body: body, headers: [:], as: name)
    }
}

extension FeatureMachine {
    /// Restarts for another user, with the actions of a start if the user is signed in.
    mutating func begin(for user: String?, isSignedIn: Bool, now: Int) -> [FeatureAction] {
        isSignedIn ? receive(.start(user: user, isLive: false), now: now) : []
    }
}

extension JSON {
    /// Whether the value is neither null nor `false`.
    var isPresent: Bool { !isNull && self != .bool(false) }

    /// Returns a copy in which these members replace its own of the same names.
    func with(_ changes: [String: JSON]) -> JSON {
        .object((object ?? [:]).merging(changes) { _, new in new })
    }

    func without(_ names: Set<String>) -> JSON {
        .object((object ?? [:]).filter { !names.contains($0.key) })
    }

    var strings: [String] { (array ?? []).compactMap(\.string) }
}

extension String {
    /// The text as one segment of a path, encoded as JavaScript's `encodeURIComponent` does.
    var pathSegment: String {
        let unreserved = CharacterSet(charactersIn: "-_.!~*'()").union(.asciiLetters)
        return addingPercentEncoding(withAllowedCharacters: unreserved) ?? self
    }
}

extension CharacterSet {
    fileprivate static let asciiLetters = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
}

/// Timestamps in the service's format: RFC 3339 in UTC with milliseconds.
extension Moment {
    private static let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    static func text(_ milliseconds: Int) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000).formatted(style)
    }

    /// Returns nil if the text is not a timestamp.
    static func milliseconds(_ text: String?) -> Int? {
        guard let text, let date = try? style.parse(text) else { return nil }
        return Int((date.timeIntervalSince1970 * 1000).rounded())
    }
}

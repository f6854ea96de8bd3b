import Foundation

/// The logic of a feature: a pure function of its state and its input, without I/O and without a clock. The vectors in
/// `Tests/Fixtures/Client` hold JavaScript and Swift to the same behaviour.
///
/// Encoding it yields its state with the names that the vectors use.
public protocol FeatureMachine: Sendable, Encodable {
    /// - Parameter now: milliseconds since 1970.
    mutating func receive(_ input: FeatureInput, now: Int) -> [FeatureAction]
    /// The state to keep on the device, from which `FeatureInput.restore` opens an app without a network. Nil while
    /// there is none.
    var kept: (any Encodable & Sendable)? { get }
}

extension FeatureMachine {
    public var kept: (any Encodable & Sendable)? { nil }
}

/// An input to a feature's machine.
public enum FeatureInput: Sendable, Hashable {
    /// Sent once, as the first input.
    case start(user: String?, isLive: Bool)
    case event(FeatureEvent)
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
    /// The encoded state that an earlier start kept. A machine that the service has answered ignores it.
    case restore(Data)
    /// Writes of the outbox that were made before this machine existed, in order.
    case waiting([OutboxItem])

    /// Decodes the state that an earlier start kept; nil for another input or another form.
    func restored<Kept: Decodable>(_ type: Kept.Type = Kept.self) -> Kept? {
        guard case .restore(let data) = self else { return nil }
        return try? Bellhop.decoder.decode(type, from: data)
    }
}

/// An event of the stream or of another feature, decoded once for all machines.
public struct FeatureEvent: Sendable, Hashable {
    public let name: String
    public let data: JSON
    /// Empty if the event is not replayed.
    public let id: String
    public let typed: Bellhop.StreamEvent

    init(_ name: String, _ data: JSON, id: String = "") {
        (self.name, self.data, self.id) = (name, data, id)
        typed = Bellhop.StreamEvent(ServerSentEvent(id: id, name: name, data: data.text))
    }
}

/// An action that a machine requests.
public enum FeatureAction: Sendable, Hashable {
    /// Sends a request now; if it fails, it is not kept for later.
    case fetch(path: String, as: String)
    /// Registers or removes this device now; if it fails, it is not kept for later.
    case call(method: String, path: String, body: JSON?, as: String)
    /// Changes what the device shows.
    case push(PushAction)
    /// Sends a write through the outbox, which keeps it while the device is offline.
    case send(method: String, path: String, body: JSON?, headers: [String: String], as: String)
    /// Sets the timer of that name; nil stops it.
    case timer(name: String, at: Int?)
    /// Plays with the app's player, once per key.
    case play(haptic: Bellhop.Haptic?, sound: Bool, key: String)
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

/// A machine whose state an app can show.
public protocol ShownMachine: FeatureMachine {
    associatedtype Snapshot: Sendable & Hashable
    /// The state to draw.
    var snapshot: Snapshot { get }
}

extension FeatureMachine {
    /// Restarts for another user, with the actions of a start if the user is signed in.
    mutating func begin(for user: String?, isSignedIn: Bool, now: Int) -> [FeatureAction] {
        isSignedIn ? receive(.start(user: user, isLive: false), now: now) : []
    }
}

extension Decodable where Self: Encodable {
    /// Returns a copy in which these members replace its own; nil if they do not fit.
    func with(_ changes: JSON) -> Self? { JSON(model: self).with(changes.object ?? [:]).model() }
}

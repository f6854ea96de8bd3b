/// The logic of a feature: a pure function of its state and its input, without I/O and without a clock. The vectors in
/// `Tests/Fixtures/Client` hold JavaScript and Swift to the same behaviour.
///
/// Encoding it yields its state with the names that the vectors use. What a list has stands in `list`.
public protocol FeatureMachine: Sendable, Encodable {
    associatedtype OwnCommand: Sendable & Hashable
    /// - Parameter now: milliseconds since 1970.
    mutating func receive(_ input: FeatureInput<OwnCommand>, now: Int) -> [FeatureAction]
    /// The state to keep on the device, from which `FeatureInput.restore` opens an app without a network. Nil while
    /// there is none.
    var kept: (any Encodable & Sendable)? { get }
}

extension FeatureMachine {
    public var kept: (any Encodable & Sendable)? { nil }
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
    case publish(name: String, data: JSON)
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

import Foundation

/// An input to a feature's machine.
///
/// - Parameter OwnCommand: What the user or the app asks of the machine; `Never` for inputs that all machines receive.
public enum FeatureInput<OwnCommand: Sendable & Hashable>: Sendable, Hashable {
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
    /// The encoded state that an earlier start kept. A machine that the service has answered ignores it.
    case restore(Data)
    /// Writes of the outbox that were made before this machine existed, in order.
    case waiting([OutboxItem])
    /// Fetches the state again.
    case refresh
    case command(OwnCommand)

    /// Decodes the state that an earlier start kept; nil for another input or another form.
    func restored<Kept: Decodable>(_ type: Kept.Type = Kept.self) -> Kept? {
        guard case .restore(let data) = self else { return nil }
        return try? Bellhop.decoder.decode(type, from: data)
    }

    /// An input that all machines receive, as this machine's.
    init(_ input: BellInput) {
        self =
            switch input {
            case .start(let user, let isLive): .start(user: user, isLive: isLive)
            case .event(let event): .event(event)
            case .answer(let name, let status, let body, let retryAfterSeconds):
                .answer(as: name, status: status, body: body, retryAfterSeconds: retryAfterSeconds)
            case .connection(let isLive): .connection(isLive: isLive)
            case .lifecycle(let isForeground): .lifecycle(isForeground: isForeground)
            case .watch(let isWatched): .watch(isWatched: isWatched)
            case .timer(let name): .timer(name)
            case .user(let user, let isSignedIn): .user(user, isSignedIn: isSignedIn)
            case .restore(let data): .restore(data)
            case .waiting(let items): .waiting(items)
            case .refresh: .refresh
            }
    }
}

/// An input that all machines receive.
public typealias BellInput = FeatureInput<Never>

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

import Foundation

/// An input to a feature's machine.
///
/// - Parameter Command: What the user or the app asks of the machine; `Never` for inputs that all machines receive.
public enum FeatureInput<Command: Sendable & Hashable>: Sendable, Hashable {
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
    case command(Command)

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

// MARK: Commands of the user or the app, by store

public enum BookingCommand: Sendable, Hashable {
    /// Changes the members of the booking that `set` has.
    case change(set: JSON)
}

public enum ConversationCommand: Sendable, Hashable {
    case send(id: String, text: String)
    /// Sends a refused message again.
    case retry(id: String)
    /// Drops a refused message.
    case discard(id: String)
    case delete(id: String)
    /// - Parameter sequence: nil for the newest loaded message.
    case read(sequence: Int?)
    case earlier
}

public enum ConversationsCommand: Sendable, Hashable {
    case more
}

public enum CountsCommand: Sendable, Hashable {
    /// Registers a write that will change the counts by this much.
    case expect(as: String, by: CountsMachine.Amounts)
}

public enum DJCommand: Sendable, Hashable {
    case vote(trackId: String, vote: DJQueueState.Vote)
    case add(track: Bellhop.AddTrackBody)
}

public enum FeedCommand: Sendable, Hashable {
    case more
    /// Shows the posts that wait behind the banner.
    case showNew
    case engage(postId: String, set: FeedMachine.Engagement)
}

public enum InvalidationCommand: Sendable, Hashable {
    /// Notes an own change, whose echo is ignored.
    case mutated(table: String, recordId: String)
    case watchQuery(id: String, key: InvalidationMachine.Key, isVisible: Bool)
    case unwatchQuery(id: String)
    /// Refetches all queries whose keys begin with this one.
    case refetch(key: InvalidationMachine.Key)
}

public enum NotificationsCommand: Sendable, Hashable {
    case more
    case change(id: String, set: Bellhop.NotificationStateChange)
    /// Changes all shown notifications up to the newest one shown, or up to this one.
    case changeAll(upTo: String?, category: String?, set: Bellhop.NotificationStateChange)
    case remove(id: String)
    /// Changes the members of the preferences that `set` has; null ends the quiet hours.
    case prefer(set: JSON)
}

public enum PushCommand: Sendable, Hashable {
    case device(id: String)
    /// Notes what the platform says before there is a token.
    case status(status: PushMachine.Status)
    case register(draft: JSON)
    case unregister
    case message(payload: JSON)
}

public enum RequestsCommand: Sendable, Hashable {
    case more
    /// Answers a request; without a status, withdraws it.
    case settle(id: String, status: Bellhop.UserRequest.Status?)
    /// Marks the requests to the user as seen, up to the newest one shown.
    case see
    case ask(draft: Bellhop.CreateRequestBody)
}

public enum RowsCommand: Sendable, Hashable {
    /// Changes a row by the user's own write.
    case apply(row: JSON)
    case load(rows: [JSON])
}

public enum VisibleRowsCommand: Sendable, Hashable {
    /// Changes a row by the user's own write.
    case apply(row: JSON)
    case show(ids: [String])
    case pause
    case resume
    case stop
}

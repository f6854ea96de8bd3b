/// The app's own subscriptions to shared topics, and the refusals of topics.
extension Bell {
    typealias RefusalListener = @MainActor (_ topic: String, _ reason: Connection.Reason) -> Void

    /// Subscribes to more topics, until the returned subscription is cancelled or released.
    ///
    /// - Parameter refused: Called for each topic that the service refuses. The other topics are delivered.
    public func subscribe(
        _ topics: [String], refused: (@MainActor (_ topic: String, _ reason: Connection.Reason) -> Void)? = nil
    ) throws -> TopicSubscription {
        try Topics.check(topics)
        guard subscriptions.hasRoom(for: topics) else {
            throw Bellhop.UnusableParameter(name: "topics", value: "more than a stream may have")
        }
        let subscription = TopicSubscription(self)
        subscriptions.set(ObjectIdentifier(subscription), topics: topics)
        changed(topics: true)
        if let refused {
            refusalListeners[ObjectIdentifier(subscription)] = (topics, refused)
            for topic in topics { if let reason = connection.refused[topic] { refused(topic, reason) } }
        }
        return subscription
    }

    /// Returns why a stream cannot have these topics; nil if it can.
    static func problem(of topics: [String]) -> Connection.Reason? {
        do {
            try Topics.check(topics)
            return nil
        } catch {
            return Connection.Reason(code: "topics.invalid", detail: error.description)
        }
    }

    func unsubscribe(_ key: ObjectIdentifier) {
        refusalListeners[key] = nil
        if subscriptions.remove(key).isChange { changed(topics: true) }
    }

    // MARK: Refusals

    /// Returns the event that informs a store of a topic's refusal, or nil if the topic is not refused.
    func refusal(of topic: String) -> BellInput? {
        connection.refused[topic].map { .event(FeatureEvent("topic:refused", Bell.json(topic, $0))) }
    }

    private static func json(_ topic: String, _ reason: Connection.Reason) -> JSON {
        [
            "topic": .string(topic),
            "problem": [
                "code": .string(reason.code), "status": reason.status.map { .integer(Int64($0)) } ?? .null,
                "detail": reason.detail.map(JSON.string) ?? .null,
            ],
        ]
    }

    func reportRefusals(since before: Connection) {
        for (topic, reason) in connection.refused where before.refused[topic] == nil {
            let data = Bell.json(topic, reason)
            for store in stores.values.map(\.self) { store.take(.event(FeatureEvent("topic:refused", data))) }
            yield(Event(name: "topic:refused", data: data, id: ""))
            for (topics, listener) in refusalListeners.values where topics.contains(topic) { listener(topic, reason) }
        }
    }
}

/// The app's own subscription to topics. It ends when it is cancelled or released.
public final class TopicSubscription: Sendable {
    private let bell: WeakBell

    /// `@unchecked Sendable`: a weak reference is read and cleared atomically, and the object it refers to is Sendable.
    private struct WeakBell: @unchecked Sendable {
        weak var bell: Bell?
    }

    @MainActor init(_ bell: Bell) {
        self.bell = WeakBell(bell: bell)
    }

    deinit { cancel() }

    public func cancel() {
        let (key, bell) = (ObjectIdentifier(self), bell)
        Task { @MainActor in bell.bell?.unsubscribe(key) }
    }
}

extension Bell {
    /// The options of a bell, besides its address and its token.
    public struct Options: Sendable {
        /// Shared topics to which the app subscribes, such as `queue:s1`. Stores subscribe to their own topics.
        public var topics: [String] = []
        /// The token's `sub`. With it, a start without a network shows the last state and keeps writes, although there
        /// is no token yet.
        public var user: String?
        /// The storage of the outbox, of the last state of the stores, and of the position in the stream.
        public var storage: any ClientStorage = Device.storage
        public var network: any NetworkMonitor = Device.network
        public var lifecycle: any AppLifecycle = Device.lifecycle
        /// Plays a notification's haptics and sound.
        public var player: (any NotificationPlayer)?
        /// The screen that push messages change; nil leaves every screen alone.
        public var screen: (any NotificationScreen)? = Device.screen
        /// Called by ``Bell/signOut()`` if writes wait, which are deleted with the user's state. False cancels the
        /// sign-out. Nil deletes them without a question.
        public var confirmSignOut: (@MainActor @Sendable (_ waiting: [OutboxItem]) async -> Bool)?
        public var limits = ConnectionMachine.Limits()
        public var clock = ClientClock.system

        public init() {}
    }

    /// An event of the stream, or of the bell itself (`outbox:refused`, `notifications:refused`, `query:stale` …).
    public struct Event: Sendable, Hashable {
        public let name: String
        public let data: JSON
        /// The event's id; empty for an event that is never replayed.
        public let id: String

        /// The event decoded as the service's contract defines it.
        public var typed: Bellhop.StreamEvent {
            Bellhop.StreamEvent(ServerSentEvent(id: id, name: name, data: data.text))
        }
    }
}

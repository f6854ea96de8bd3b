import Foundation

extension Bell {
    /// What a bell is given beside its address and its token.
    public struct Options: Sendable {
        /// Shared topics that the app listens to itself, such as `queue:s1`; those of the stores need not be named.
        public var topics: [String] = []
        /// The token's `sub`. With it, writes survive a start without a network, when there is no token yet.
        public var user: String?
        /// Keeps the outbox and the place in the stream.
        public var storage: any ClientStorage = Device.storage
        public var network: any NetworkMonitor = Device.network
        public var lifecycle: any AppLifecycle = Device.lifecycle
        /// Plays a notification's haptics and sound.
        public var player: (any NotificationPlayer)?
        public var limits = ConnectionMachine.Limits()
        public var clock = ClientClock.system

        public init() {}
    }

    /// What happened: told by the stream, or by the bell itself (`outbox:refused`, `notifications:refused`,
    /// `query:stale` …).
    public struct Event: Sendable, Hashable {
        public let name: String
        public let data: JSON
        /// Empty where the event is not replayed.
        public let id: String

        /// Read as the service's contract has it.
        public var typed: Bellhop.StreamEvent {
            Bellhop.StreamEvent(ServerSentEvent(id: id, name: name, data: data.text))
        }
    }
}

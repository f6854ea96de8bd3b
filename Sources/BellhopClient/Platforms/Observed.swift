#if canImport(Observation)
    import Observation

    /// A store as SwiftUI and others observe it: reading a member in a view's body draws the view again when it changes.
    ///
    /// ```swift
    /// @State private var notifications = Observed(bell.notifications)
    /// // …
    /// List(notifications.items, id: \.id) { … }
    /// Button("Read") { notifications.store.markRead(id) }
    /// ```
    ///
    /// Its topic is subscribed to for as long as it lives.
    @available(iOS 17, macCatalyst 17, macOS 14, tvOS 17, visionOS 1, watchOS 10, *)
    @MainActor @Observable @dynamicMemberLookup
    public final class Observed<Machine: ShownMachine> {
        public private(set) var snapshot: Machine.Snapshot
        @ObservationIgnored public let store: Store<Machine>
        @ObservationIgnored private var following: Cancelling?

        public init(_ store: Store<Machine>) {
            self.store = store
            snapshot = store.snapshot
            let updates = store.updates
            following = Cancelling(Task { [weak self] in for await snapshot in updates { self?.take(snapshot) } })
        }

        public subscript<Member>(dynamicMember path: KeyPath<Machine.Snapshot, Member>) -> Member {
            snapshot[keyPath: path]
        }

        private func take(_ next: Machine.Snapshot) {
            if next != snapshot { snapshot = next }
        }
    }

    /// A bell's connection and what waits to be sent, as SwiftUI and others observe them.
    @available(iOS 17, macCatalyst 17, macOS 14, tvOS 17, visionOS 1, watchOS 10, *)
    @MainActor @Observable
    public final class ObservedConnection {
        public private(set) var connection: Bell.Connection
        @ObservationIgnored private var following: Cancelling?

        public init(_ bell: Bell) {
            connection = bell.connection
            let updates = bell.connectionUpdates
            following = Cancelling(Task { [weak self] in for await next in updates { self?.connection = next } })
        }
    }
#endif

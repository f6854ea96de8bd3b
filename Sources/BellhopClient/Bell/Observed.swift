#if canImport(Observation)
    import Observation

    /// Makes a store observable for SwiftUI and others: a view whose body reads a member is redrawn when that member
    /// changes.
    ///
    /// ```swift
    /// @State private var notifications = Observed(bell.notifications)
    /// // …
    /// List(notifications.items, id: \.id) { … }
    /// Button("Read") { notifications.store.markRead(id) }
    /// ```
    ///
    /// The store stays subscribed to its topic while this object lives.
    @available(iOS 17, macCatalyst 17, macOS 14, tvOS 17, visionOS 1, watchOS 10, *)
    @MainActor @Observable @dynamicMemberLookup
    public final class Observed<Machine: ShownMachine> {
        public private(set) var snapshot: Machine.Snapshot
        @ObservationIgnored public let store: Store<Machine>
        @ObservationIgnored private var following: CancellingTask?

        public init(_ store: Store<Machine>) {
            self.store = store
            snapshot = store.snapshot
            let updates = store.updates
            following = CancellingTask(Task { [weak self] in for await snapshot in updates { self?.take(snapshot) } })
        }

        public subscript<Member>(dynamicMember path: KeyPath<Machine.Snapshot, Member>) -> Member {
            snapshot[keyPath: path]
        }

        private func take(_ next: Machine.Snapshot) {
            if next != snapshot { snapshot = next }
        }
    }

    /// Makes a bell's connection and its number of unsent writes observable for SwiftUI and others.
    @available(iOS 17, macCatalyst 17, macOS 14, tvOS 17, visionOS 1, watchOS 10, *)
    @MainActor @Observable
    public final class ObservedConnection {
        public private(set) var connection: Bell.Connection
        @ObservationIgnored private var following: CancellingTask?

        public init(_ bell: Bell) {
            connection = bell.connection
            let updates = bell.connectionUpdates
            following = CancellingTask(Task { [weak self] in for await next in updates { self?.connection = next } })
        }
    }
#endif

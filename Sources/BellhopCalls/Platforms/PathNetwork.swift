// Not compiled on Linux, where this package's tests run; only its syntax is checked there.
#if canImport(Network)
    import Dispatch
    import Network

    /// The network state reported by the system's path monitor.
    public final class PathNetwork: NetworkMonitor {
        private let monitor = NWPathMonitor()
        private let state = ManualValue(NetworkState(isOnline: true))
        private let interface = Guarded<NWInterface.InterfaceType?>(nil)

        public init() {
            monitor.pathUpdateHandler = { [weak self] path in self?.take(path) }
            monitor.start(queue: DispatchQueue(label: "bellhop.network"))
        }

        deinit { monitor.cancel() }

        public var isOnline: Bool { state.value.isOnline }
        public func changes() -> AsyncStream<NetworkState> { state.changes() }

        private func take(_ path: NWPath) {
            let kinds: [NWInterface.InterfaceType] = [.wiredEthernet, .wifi, .cellular, .other]
            let isOnline = path.status == .satisfied
            let used = kinds.first { path.usesInterfaceType($0) }
            // For example from Wi-Fi to cellular: the connections of the previous interface are dead.
            let isChanged = interface.withLock { interface in
                guard isOnline, let used else { return false }
                defer { interface = used }
                return interface != nil && interface != used
            }
            state.tell(NetworkState(isOnline: isOnline, isChanged: isChanged))
        }
    }
#endif

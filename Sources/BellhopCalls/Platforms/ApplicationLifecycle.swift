// Not compiled on Linux, where this package's tests run; only its syntax is checked there.
#if canImport(AppKit) && !targetEnvironment(macCatalyst)
    import AppKit

    /// The lifecycle of a macOS app: a hidden app is in the background; a window behind another app's is still visible.
    public final class ApplicationLifecycle: AppLifecycle {
        private let state = ManualValue(true)
        private let watching: [CancellingTask]

        public init() {
            let state = state
            let moments = [
                (NSApplication.didUnhideNotification, true), (NSApplication.didBecomeActiveNotification, true),
                (NSApplication.didHideNotification, false),
            ]
            watching = moments.map { name, isForeground in
                CancellingTask(
                    Task {
                        for await _ in NotificationCenter.default.notifications(named: name).map({ _ in () }) {
                            state.tell(isForeground)
                        }
                    })
            }
        }

        public var isForeground: Bool { state.value }
        public func changes() -> AsyncStream<Bool> { state.changes() }
    }
#endif

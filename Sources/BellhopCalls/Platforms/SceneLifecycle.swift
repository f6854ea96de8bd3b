// Not compiled on Linux, where this package's tests run; only its syntax is checked there.
#if canImport(UIKit) && !os(watchOS)
    import UIKit

    /// The lifecycle of an iOS, iPadOS, tvOS or visionOS app: in the foreground while one of its scenes is.
    public final class SceneLifecycle: AppLifecycle {
        private let state = ManualValue(true)
        private let watching: [CancellingTask]

        public init() {
            let state = state
            let moments = [
                (UIApplication.willEnterForegroundNotification, true),
                (UIApplication.didEnterBackgroundNotification, false),
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

// Not compiled on Linux, where this package's tests run; only its syntax is checked there.
#if canImport(UIKit) && !os(watchOS)
    import UIKit
#elseif canImport(AppKit)
    import AppKit
#endif

#if (canImport(UIKit) && !os(watchOS)) || canImport(AppKit)
    /// The lifecycle of an app of Apple's systems.
    ///
    /// An iOS, iPadOS, tvOS or visionOS app is in the foreground while one of its scenes is. A hidden macOS app is in the
    /// background; a window behind another app's is still visible.
    public final class ApplicationLifecycle: AppLifecycle {
        private let state = ManualValue(true)
        private let watching: [CancellingTask]

        public init() {
            let state = state
            #if canImport(UIKit)
                let moments = [
                    (UIApplication.willEnterForegroundNotification, true),
                    (UIApplication.didEnterBackgroundNotification, false),
                ]
            #else
                let moments = [
                    (NSApplication.didUnhideNotification, true), (NSApplication.didBecomeActiveNotification, true),
                    (NSApplication.didHideNotification, false),
                ]
            #endif
            watching = moments.map { name, isForeground in
                CancellingTask(
                    Task {
                        for await _ in NotificationCenter.default.notifications(named: name).map({ _ in () }) {
                            state.report(isForeground)
                        }
                    })
            }
        }

        public var isForeground: Bool { state.value }
        public func changes() -> AsyncStream<Bool> { state.changes() }
    }
#endif

/// The defaults of this device, used if the app sets nothing else.
public enum Device {
    #if canImport(Network)
        public static var network: any NetworkMonitor { PathNetwork() }
    #else
        /// This platform does not report the network state: the network counts as available until a request fails.
        public static var network: any NetworkMonitor { ManualNetwork() }
    #endif

    #if (canImport(UIKit) && !os(watchOS)) || canImport(AppKit)
        public static var lifecycle: any AppLifecycle { ApplicationLifecycle() }
    #else
        /// A command or a server is never in the background.
        public static var lifecycle: any AppLifecycle { ManualLifecycle() }
    #endif

    #if os(iOS) || os(watchOS) || os(tvOS) || os(visionOS) || os(Android)
        /// How long a stream stays open in the background, in milliseconds: it costs battery there.
        public static let backgroundMilliseconds: Int? = 30_000
    #else
        /// How long a stream stays open in the background, in milliseconds; nil means no limit.
        public static let backgroundMilliseconds: Int? = nil
    #endif
}

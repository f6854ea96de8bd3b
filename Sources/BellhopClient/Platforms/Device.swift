import Foundation

/// What there is on this device, where the app says nothing else.
public enum Device {
    #if canImport(Network)
        public static var network: any NetworkMonitor { PathNetwork() }
    #else
        /// Nothing tells of a network here: it is there, until a request says otherwise.
        public static var network: any NetworkMonitor { ToldNetwork() }
    #endif

    #if canImport(UIKit) && !os(watchOS)
        public static var lifecycle: any AppLifecycle { SceneLifecycle() }
    #elseif canImport(AppKit) && !targetEnvironment(macCatalyst)
        public static var lifecycle: any AppLifecycle { ApplicationLifecycle() }
    #else
        /// A command or a server has no background.
        public static var lifecycle: any AppLifecycle { ToldLifecycle() }
    #endif

    #if os(iOS) || os(watchOS) || os(tvOS) || os(visionOS) || os(Android)
        /// How long a stream stays open in the background, in milliseconds: it costs battery there.
        public static let backgroundMilliseconds: Int? = 30_000
    #else
        /// How long a stream stays open in the background, in milliseconds; nil: for ever.
        public static let backgroundMilliseconds: Int? = nil
    #endif

    #if canImport(Darwin)
        /// Files that the system does not clean up; memory where there is no place for them.
        public static var storage: any ClientStorage { FileStorage.inApplicationSupport ?? MemoryStorage() }
    #else
        /// Memory: a command or a server says itself where its files are.
        public static var storage: any ClientStorage { MemoryStorage() }
    #endif
}

extension FileStorage {
    /// `bellhop` in the user's Application Support; nil where there is none.
    public static var inApplicationSupport: FileStorage? {
        let places = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        return places.first.map { FileStorage(directory: $0.appendingPathComponent("bellhop")) }
    }
}

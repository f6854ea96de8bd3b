import Foundation

extension Device {
    #if canImport(Darwin)
        /// Files in a place that the system does not clean up, or memory without such a place.
        public static var storage: any ClientStorage { FileStorage.inApplicationSupport ?? MemoryStorage() }
    #else
        /// Memory; a command or a server configures the place of its files itself.
        public static var storage: any ClientStorage { MemoryStorage() }
    #endif
}

extension FileStorage {
    /// `bellhop` in the user's Application Support, or nil if there is no such directory.
    public static var inApplicationSupport: FileStorage? {
        let places = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        return places.first.map { FileStorage(directory: $0.appendingPathComponent("bellhop")) }
    }
}

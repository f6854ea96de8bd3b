import Foundation

/// Storage by key that outlives the app's process, for the outbox and the position in the stream.
public protocol ClientStorage: Sendable {
    func get(_ key: String) async throws -> Data?
    /// Stores a value atomically, even if the process ends meanwhile.
    func set(_ key: String, _ value: Data) async throws
    func remove(_ key: String) async throws
    /// Returns the keys in sorted order.
    func keys(beginningWith prefix: String) async throws -> [String]
}

/// A storage that ends with the process.
public final class MemoryStorage: ClientStorage {
    private let values = Guarded<[String: Data]>([:])

    public init() {}

    public func get(_ key: String) async -> Data? { values.withLock { $0[key] } }
    public func set(_ key: String, _ value: Data) async { values.withLock { $0[key] = value } }
    public func remove(_ key: String) async { _ = values.withLock { $0.removeValue(forKey: key) } }

    public func keys(beginningWith prefix: String) async -> [String] {
        values.withLock { $0.keys.filter { $0.hasPrefix(prefix) }.sorted() }
    }
}

/// A storage with one file per key, in its own directory. Each file is written beside its place and then renamed.
public final class FileStorage: ClientStorage {
    /// A file name may have 255 bytes.
    private static let nameBytesMax = 200
    /// Characters that a file name may contain unescaped. A dot would hide a file, or lead out of the directory.
    private static let plain = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
    /// Marks a directory that holds the next part of a long name.
    private static let more = "+"

    #if canImport(Darwin)
        /// A stream in the background writes while the device is locked, but not before its first unlock.
        private static let protection = Data.WritingOptions.completeFileProtectionUntilFirstUserAuthentication
    #else
        private static let protection: Data.WritingOptions = []
    #endif

    public let directory: URL

    /// - Parameter directory: created if it is missing. Writes may wait days for a network, so it belongs where the
    ///   system does not clean up, such as Application Support.
    public init(directory: URL) {
        self.directory = directory
    }

    public func get(_ key: String) async throws -> Data? {
        do {
            return try Data(contentsOf: place(of: key))
        } catch CocoaError.fileReadNoSuchFile {
            return nil
        }
    }

    public func set(_ key: String, _ value: Data) async throws {
        let place = place(of: key)
        let folder = place.deletingLastPathComponent()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // Synced to the disk before the rename: after a power loss, the device has the previous file or this one.
        let draft = folder.appendingPathComponent(".\(UUID().uuidString)")
        do {
            try value.write(to: draft, options: FileStorage.protection)
            let file = try FileHandle(forUpdating: draft)
            try file.synchronize()
            try file.close()
            guard rename(draft.path, place.path) == 0 else { throw CocoaError(.fileWriteUnknown) }
        } catch {
            try? FileManager.default.removeItem(at: draft)
            throw error
        }
    }

    public func remove(_ key: String) async throws {
        do {
            try FileManager.default.removeItem(at: place(of: key))
        } catch CocoaError.fileNoSuchFile {
            // Another thread created it first.
        }
    }

    public func keys(beginningWith prefix: String) async throws -> [String] {
        guard FileManager.default.fileExists(atPath: directory.path) else { return [] }
        let paths = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
        return paths.compactMap(key).filter { $0.hasPrefix(prefix) }.sorted()
    }

    private func place(of key: String) -> URL {
        var rest = Substring(key.addingPercentEncoding(withAllowedCharacters: FileStorage.plain) ?? "")
        var place = directory
        while rest.utf8.count > FileStorage.nameBytesMax {
            place.appendPathComponent(rest.prefix(FileStorage.nameBytesMax) + FileStorage.more)
            rest = rest.dropFirst(FileStorage.nameBytesMax)
        }
        // The end of a file's name, so that no file has the name of a directory.
        return place.appendingPathComponent("\(rest)=")
    }

    /// Returns nil for a directory, and for a file that was not completely written.
    private func key(_ path: String) -> String? {
        guard path.hasSuffix("="), !path.contains("/."), !path.hasPrefix(".") else { return nil }
        return path.dropLast().replacingOccurrences(of: "\(FileStorage.more)/", with: "").removingPercentEncoding
    }
}

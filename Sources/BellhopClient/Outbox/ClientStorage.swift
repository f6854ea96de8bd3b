import Foundation

/// What outlives the app's process: the outbox and the place in the stream, by keys.
public protocol ClientStorage: Sendable {
    func get(_ key: String) async throws -> Data?
    /// Whole or not at all, also where the process ends meanwhile.
    func set(_ key: String, _ value: Data) async throws
    func remove(_ key: String) async throws
    /// In their order.
    func keys(beginningWith prefix: String) async throws -> [String]
}

/// A storage that is gone at the end of the process.
public final class MemoryStorage: ClientStorage {
    private let values = Locked<[String: Data]>([:])

    public init() {}

    public func get(_ key: String) async -> Data? { values.withLock { $0[key] } }
    public func set(_ key: String, _ value: Data) async { values.withLock { $0[key] = value } }
    public func remove(_ key: String) async { _ = values.withLock { $0.removeValue(forKey: key) } }

    public func keys(beginningWith prefix: String) async -> [String] {
        values.withLock { $0.keys.filter { $0.hasPrefix(prefix) }.sorted() }
    }
}

/// A file for each key, in a directory of its own; each is written whole beside its place, and then put there.
public final class FileStorage: ClientStorage {
    /// A name of a file may have 255 bytes.
    private static let nameBytesMax = 200
    /// What may stand in a file's name as it is; a dot would hide a file, or lead out of the directory.
    private static let plain = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
    /// A directory that the next part of a long name is in.
    private static let more = "+"

    public let directory: URL

    /// - Parameter directory: is made where there is none. What is written may wait days for a network: it belongs where
    ///   the system does not clean up, such as Application Support.
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
        // On the disk before it is named: a device that loses its power keeps the one before or this one.
        let draft = folder.appendingPathComponent(".\(UUID().uuidString)")
        do {
            try value.write(to: draft)
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
            // Somebody was faster.
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
        // The end of a file's name, so that no file is called as a directory is.
        return place.appendingPathComponent("\(rest)=")
    }

    /// Nil for a directory, and for a file that was not written to its end.
    private func key(_ path: String) -> String? {
        guard path.hasSuffix("="), !path.contains("/."), !path.hasPrefix(".") else { return nil }
        return path.dropLast().replacingOccurrences(of: "\(FileStorage.more)/", with: "").removingPercentEncoding
    }
}

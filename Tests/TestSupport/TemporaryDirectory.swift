import Foundation

/// An empty directory of a test's own, which goes with everything in it when nothing refers to it any more.
public final class TemporaryDirectory: Sendable {
    public let path: String

    public init() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "bellhop-test-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        path = url.resolvingSymlinksInPath().path
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in it, which need not exist.
    public func file(_ name: String) -> String { path + "/" + name }

    /// Writes a file; gives its path.
    @discardableResult
    public func write(_ text: String, to name: String) throws -> String {
        try text.write(toFile: file(name), atomically: true, encoding: .utf8)
        return file(name)
    }
}

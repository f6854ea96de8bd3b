import Foundation
import TestSupport
import Testing

/// The built `bellhop`, run as in a shell or a container. Its home is an empty folder.
final class BellhopProcess {
    static let binary = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        .appendingPathComponent("bellhop")

    /// Runs a command as the image's user, which owns no files here.
    static let stranger = ["setpriv", "--reuid", "65532", "--clear-groups"]
    /// Whether the binary can run as that user: only root can switch users, and the binary may lie in a folder that
    /// other users cannot read.
    static let canRunAsStranger = (try? BellhopProcess(["--version"], through: stranger).finish())?.status == 0

    private let home: TemporaryDirectory
    private let process: ChildProcess
    private var said = Data()

    /// - Parameters:
    ///   - settings: variables without the prefix `BELLHOP_`.
    ///   - variables: environment variables by their full names.
    ///   - wrapper: a command that runs the service.
    init(
        _ arguments: [String], settings: [String: String] = [:], variables: [String: String] = [:],
        through wrapper: [String] = []
    ) throws {
        home = try TemporaryDirectory()
        var environment = ProcessInfo.processInfo.environment.filter {
            !$0.key.hasPrefix("BELLHOP_") && !$0.key.hasPrefix("XDG_")
        }
        environment["HOME"] = home.path
        // Tests of the drain override this.
        environment["BELLHOP_DRAIN_SECONDS"] = "0"
        environment.merge(variables) { $1 }
        for (name, value) in settings { environment["BELLHOP_" + name] = value }
        process = try ChildProcess(wrapper + [Self.binary.path] + arguments, environment: environment, in: home.path)
    }

    deinit { terminate() }

    /// Reads output until it contains the text; returns false if the process ends before.
    func says(_ text: String) -> Bool {
        while !String(decoding: said, as: UTF8.self).contains(text) {
            let piece = process.output.availableData
            guard !piece.isEmpty else { return false }
            said += piece
        }
        return true
    }

    func awaitText(_ text: String) throws {
        try #require(says(text), "it ended without “\(text)”: \(String(decoding: said, as: UTF8.self))")
    }

    /// Waits until the service listens, and returns its port.
    func awaitPort() throws -> Int {
        try awaitText("Bellhop is listening.")
        let text = String(decoding: said, as: UTF8.self)
        let found = text.firstMatch(of: /(?:port=|"port":)([0-9]+)/)
        return try #require(found.flatMap { Int($0.1) }, "\(text)")
    }

    /// The process id of the service, also behind a wrapper that replaces itself with the service.
    var identifier: Int32 { process.identifier }

    func send(_ signal: Int32) { process.send(signal) }

    func terminate() { send(SIGTERM) }

    /// Waits until the process ends. Returns its status and all its output.
    func finish() -> (status: Int32, text: String) {
        said += process.output.readDataToEndOfFile()
        return (process.wait(), String(decoding: said, as: UTF8.self))
    }

    /// The files and folders that the process has created in its home.
    var leavings: [String] { (try? FileManager.default.subpathsOfDirectory(atPath: home.path)) ?? ["no home"] }
}

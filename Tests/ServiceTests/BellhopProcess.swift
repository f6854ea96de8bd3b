import Foundation
import TestSupport
import Testing

/// The built `bellhop`, run as a shell or a container runs it, in an empty folder that is its home.
final class BellhopProcess {
    static let binary = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        .appendingPathComponent("bellhop")

    /// The user of the image, who owns nothing here.
    static let stranger = ["setpriv", "--reuid", "65532", "--clear-groups"]
    /// Only root may become somebody else, and the binary may lie where nobody else may look.
    static let canRunAsStranger = (try? BellhopProcess(["--version"], through: stranger).finish())?.status == 0

    private let home: TemporaryDirectory
    private let process: ChildProcess
    private var said = Data()

    /// - Parameters:
    ///   - settings: variables, without `BELLHOP_`.
    ///   - variables: of the environment, by their whole names.
    ///   - wrapper: a command that runs another one.
    init(
        _ arguments: [String], settings: [String: String] = [:], variables: [String: String] = [:],
        through wrapper: [String] = []
    ) throws {
        home = try TemporaryDirectory()
        var environment = ProcessInfo.processInfo.environment.filter {
            !$0.key.hasPrefix("BELLHOP_") && !$0.key.hasPrefix("XDG_")
        }
        environment["HOME"] = home.path
        // Whoever tests how it drains says so.
        environment["BELLHOP_DRAIN_SECONDS"] = "0"
        environment.merge(variables) { $1 }
        for (name, value) in settings { environment["BELLHOP_" + name] = value }
        process = try ChildProcess(wrapper + [Self.binary.path] + arguments, environment: environment, in: home.path)
    }

    deinit { terminate() }

    /// Reads on until the text comes.
    func awaitText(_ text: String) throws {
        while !String(decoding: said, as: UTF8.self).contains(text) {
            let piece = process.output.availableData
            try #require(!piece.isEmpty, "it ended without “\(text)”: \(String(decoding: said, as: UTF8.self))")
            said += piece
        }
    }

    /// The port that it listens on, when it does.
    func awaitPort() throws -> Int {
        try awaitText("Bellhop is listening.")
        let text = String(decoding: said, as: UTF8.self)
        let found = text.firstMatch(of: /(?:port=|"port":)([0-9]+)/)
        return try #require(found.flatMap { Int($0.1) }, "\(text)")
    }

    /// Where the wrapper, if there is one, becomes the service.
    var identifier: Int32 { process.identifier }

    func send(_ signal: Int32) { process.send(signal) }

    func terminate() { send(SIGTERM) }

    /// Waits for the end; gives everything that was said.
    func finish() -> (status: Int32, text: String) {
        said += process.output.readDataToEndOfFile()
        return (process.wait(), String(decoding: said, as: UTF8.self))
    }

    /// Files and folders that it has made at home.
    var leavings: [String] { (try? FileManager.default.subpathsOfDirectory(atPath: home.path)) ?? ["no home"] }
}

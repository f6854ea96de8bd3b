import Foundation
import TestSupport
import Testing

/// How the built service starts, or says what stands in the way.
@Suite struct StartTests {
    private let directory: TemporaryDirectory

    private var folder: String { directory.path }

    init() throws { directory = try TemporaryDirectory() }

    private static let settings = ["JWT_SECRET": TestService.secret, "PORT": "0"]

    private func serve(_ database: String, as wrapper: [String] = []) throws -> (status: Int32, text: String) {
        let settings = Self.settings.merging(["DATABASE": "sqlite:\(database)"]) { $1 }
        return try BellhopProcess(["serve"], settings: settings, through: wrapper).finish()
    }

    @Test func missingFolder_isCalledThat() throws {
        let (status, text) = try serve(folder + "/missing/a.sqlite")
        #expect(status == 78)
        #expect(text == "bellhop: cannot start: database: the folder \(folder)/missing does not exist\n")
    }

    @Test(.enabled(if: BellhopProcess.canRunAsStranger, "only root may become somebody else"))
    func folderOfSomebodyElse_isNamedWithItsOwner() throws {
        let (status, text) = try serve(folder + "/a.sqlite", as: BellhopProcess.stranger)
        #expect(status == 78)
        #expect(
            text == """
                bellhop: cannot start: database: \(folder) belongs to root (uid 0), and the service runs as uid 65532: \
                chown 65532 \(folder), or mount a volume that it owns

                """)
    }

    @Test(.enabled(if: BellhopProcess.canRunAsStranger, "only root may become somebody else"))
    func fileOfSomebodyElse_isNamedWithItsOwner() throws {
        let file = folder + "/a.sqlite"
        try Data().write(to: URL(fileURLWithPath: file))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder)
        let (status, text) = try serve(file, as: BellhopProcess.stranger)
        #expect(status == 78)
        #expect(text.contains("\(file) belongs to root (uid 0)"))
        #expect(text.hasSuffix(": chown 65532 \(file)\n"))
    }

    @Test func missingSecret_isNamedByItsVariable() throws {
        let (status, text) = try BellhopProcess(["serve"]).finish()
        #expect(status == 78)
        #expect(text.contains("set BELLHOP_JWT_SECRET (at least 32 bytes) or BELLHOP_JWKS"))
    }

    @Test func fewDescriptors_areWarnedOf() throws {
        let settings = Self.settings.merging(["DATABASE": "sqlite::memory:"]) { $1 }
        let service = try BellhopProcess(["serve"], settings: settings, through: ["prlimit", "--nofile=1000"])
        try service.awaitText("Bellhop is listening.")
        service.terminate()
        let (status, text) = service.finish()
        #expect(status == 0)
        let warnings = text.split(separator: "\n").filter { $0.contains(" warning ") }
        #expect(warnings.count == 2)
        for part in ["BELLHOP_STREAMS_MAX", "asked=100000", "holds=872", "RLIMIT_NOFILE=1000"] {
            #expect(warnings.first?.contains(part) == true, "\(part) in \(text)")
        }
        #expect(warnings.last?.contains("setting=BELLHOP_CONNECTIONS_MAX") == true)
    }

    /// Foundation would make folders for cookies and a cache, which nobody reads.
    @Test func commands_leaveNothingInTheHome() throws {
        let service = try TestService.start()
        let secret = ["JWT_SECRET": TestService.secret]
        for arguments in [
            ["check", "--url", "\(service.baseURL)/healthz"], ["token", "--subject", "ada"],
            ["listen", "http://127.0.0.1:1", "--subject", "ada", "--tries", "1"],
        ] {
            let command = try BellhopProcess(arguments, settings: secret)
            _ = command.finish()
            #expect(command.leavings == [], "\(arguments)")
        }
        let settings = ["JWKS": "http://127.0.0.1:1/keys", "PORT": "0", "DATABASE": "sqlite::memory:"]
        let fetching = try BellhopProcess(["serve"], settings: settings)
        try fetching.awaitText("The signing keys could not be fetched.")
        fetching.terminate()
        #expect(fetching.finish().status == 0)
        #expect(fetching.leavings == [])
    }
}

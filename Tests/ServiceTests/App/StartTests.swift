import BellhopClient
import Database
import Foundation
import PostgresServer
import TestSupport
import Testing
import Values

@testable import Service

/// The start of the built service, and its error messages if it cannot start.
@Suite(.timed) struct StartTests {
    private let directory: TemporaryDirectory

    private var folder: String { directory.path }

    init() throws { directory = try TemporaryDirectory() }

    private static let settings = ["JWT_SECRET": TestService.secret, "PORT": "0"]

    private func serve(_ database: String, as wrapper: [String] = []) throws -> (status: Int32, text: String) {
        let settings = Self.settings.merging(["DATABASE": "sqlite:\(database)"]) { $1 }
        return try BellhopProcess(["serve"], settings: settings, through: wrapper).finish()
    }

    @Test func missingFolder_isNamedInTheError() throws {
        let (status, text) = try serve(folder + "/missing/a.sqlite")
        #expect(status == 78)
        #expect(text == "bellhop: cannot start: database: the folder \(folder)/missing does not exist\n")
    }

    @Test(arguments: [["check", "--database", "sqlite:"], ["policies", "--tables", ""]])
    func missingFolder_isNamedByEveryCommand(_ command: [String]) throws {
        let file = "\(folder)/missing/file"
        let (status, text) = try BellhopProcess(command.dropLast() + [(command.last ?? "") + file]).finish()
        #expect(status != 0)
        #expect(text.contains("the folder \(folder)/missing does not exist"), "\(text)")
    }

    @Test func folderInPlaceOfAFile_isNamedInTheError() throws {
        let (status, text) = try serve(folder)
        #expect(status == 78)
        #expect(text.contains("database: \(folder) is a folder: name a file in it, such as \(folder)/bellhop.sqlite"))
    }

    /// An error in a settings file names the file.
    @Test func unusableSettingsFile_isNamed() throws {
        let broken = try directory.write("port: [1\n", to: "broken.yaml")
        let text = try directory.write("hello\n", to: "text.yaml")
        let unknown = try directory.write("prot: 1\n", to: "unknown.yaml")
        let bytes = directory.file("bytes.yaml")
        try Data([0xFF, 0xFE]).write(to: URL(fileURLWithPath: bytes))
        for (file, reason) in [
            (broken, "the settings file \(broken) is not valid YAML: 2:1"), (text, "must contain names and values"),
            (unknown, "did you mean port? (in \(unknown))"), (bytes, "the settings file \(bytes) is not UTF-8 text"),
            (folder, "the settings file \(folder) is a folder"),
            (folder + "/none.yaml", "the settings file \(folder)/none.yaml"),
        ] {
            let (status, said) = try BellhopProcess(["serve", "--config", file], settings: Self.settings).finish()
            #expect(status == 78)
            #expect(said.contains(reason), "\(said)")
            #expect(said.contains(file), "\(said)")
            #expect(said.split(separator: "\n").count == 1, "\(said)")
        }
    }

    /// Help fits in 80 columns. The description of a setting stands beside its name and never below it at the left
    /// margin.
    @Test(arguments: [
        [], ["serve"], ["token"], ["listen"], ["demo"], ["migrate"], ["policies"], ["routes"], ["check"], ["health"],
    ])
    func help_fitsATerminal(_ command: [String]) throws {
        let (status, text) = try BellhopProcess(command + ["--help"], variables: ["COLUMNS": "80"]).finish()
        #expect(status == 0)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for line in lines { #expect(line.count <= 80, "\(line)") }
        let settings = lines.drop { $0 != "NETWORK:" }.prefix { !$0.hasPrefix("USAGE:") }
        for line in settings where !line.isEmpty && !line.hasSuffix(":") {
            #expect(line.hasPrefix("  "), "\(line)")
        }
    }

    /// The argument parser breaks a line that fills the terminal, and a broken example cannot be copied.
    @Test func examplesOfHelp_areNotBroken() throws {
        let dump = try JSON(parsing: Data(BellhopProcess(["--experimental-dump-help"]).finish().text.utf8))
        var commands = [dump["command"]]
        while let command = commands.popLast() {
            commands += command["subcommands"].array ?? []
            for line in (command["discussion"].string ?? "").split(separator: "\n") where line.hasPrefix("  ") {
                #expect(line.count < 80, "\(command["commandName"].string ?? ""): \(line)")
            }
        }
    }

    @Test func help_showsTheDefaultOfTheDatabase() throws {
        let text = try BellhopProcess(["serve", "--help"], variables: ["COLUMNS": "200"]).finish().text
        #expect(text.contains("--database  (BELLHOP_DATABASE) [sqlite:bellhop.sqlite] secret"))
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func completions_containAllSettings_ofEveryCommandThatHasThem(_ shell: String) throws {
        let script = try BellhopProcess(["--generate-completion-script", shell]).finish().text
        let commands = ["serve", "health", "migrate", "backup", "restore", "check", "doctor"]
        for key in Settings.catalog {
            let offer = shell == "fish" ? " -l '\(key.flag.dropFirst(2))' " : key.flag
            #expect(script.occurrences(of: offer) >= commands.count, "\(key.flag)")
        }
        guard shell == "bash" else { return }
        let line = "bellhop serve --rate-limit-u"
        let words = "COMP_WORDS=(\(line)) COMP_CWORD=2 COMP_LINE='\(line)' COMP_POINT=\(line.count)"
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            "\(script)\n\(words)\n_bellhop bellhop --rate-limit-u serve\necho ${COMPREPLY[@]}\n", to: "complete.bash")
        #expect(try ChildProcess(["bash", file]).finish().text == "--rate-limit-user\n")
    }

    /// Users type `localhost:8080` as an address.
    @Test func addressWithoutScheme_isUnderstood() throws {
        let service = try TestService.start()
        service.clock.run()
        let secret = ["JWT_SECRET": TestService.secret]
        let address = "127.0.0.1:\(service.port)"
        #expect(try BellhopProcess(["check", "--url", "\(address)/healthz"]).finish().status == 0)
        let listening = try BellhopProcess(["listen", address, "--subject", "ada"], settings: secret)
        try listening.awaitText("connected to http://\(address)")
        listening.terminate()
        _ = listening.finish()
        let byFlag = try BellhopProcess(["listen", "--url", address, "--subject", "ada"], settings: secret)
        try byFlag.awaitText("connected to http://\(address)")
        byFlag.terminate()
        _ = byFlag.finish()
        let acting = try BellhopProcess(
            ["demo", "--acts", "1", "--pace", "0"], settings: secret.merging(["URL": address]) { $1 })
        #expect(acting.finish().status == 0)
    }

    /// The demo shop looks real: one customer per chair, each on time, and a short line.
    @Test func demo_isBelievable_andShowsTheConsole() async throws {
        let service = try TestService.start()
        service.clock.run()
        let settings = ["JWT_SECRET": TestService.secret, "URL": service.baseURL]
        for seed in 1...effort(quick: 1, full: 2, long: 10) {
            let acting = try BellhopProcess(
                ["demo", "--acts", "250", "--pace", "0", "--seed", "\(seed)"], settings: settings)
            let (status, text) = acting.finish()
            #expect(status == 0, "\(text.suffix(400))")
            #expect(text.contains("console as ada: \(service.baseURL)/#token="))
        }
        let entries = try await service.call("GET", "/v1/shops/demo-shop/queue/entries", as: .staff(of: "demo-shop"))
            .items
        let seated = entries.filter { $0["status"] == "in-progress" }
        #expect(seated.count == 3)
        #expect(Set(seated.compactMap { $0["barberId"].string }).count == 3, "\(seated)")
        #expect(entries.count <= 3 + 10 + 3)
        for entry in entries {
            let start = try #require(entry["scheduledStart"].string.flatMap { Timestamp(rfc3339: $0) })
            let minutes = (start.seconds - service.clock.now.seconds) / 60
            #expect(minutes <= (entry["status"] == "in-progress" ? 3 : 80), "\(entry)")
        }
    }

    @Test(.enabled(if: BellhopProcess.canRunAsStranger, "only root can switch users"))
    func folderOfAnotherOwner_isNamedWithItsOwner() throws {
        let (status, text) = try serve(folder + "/a.sqlite", as: BellhopProcess.stranger)
        #expect(status == 78)
        #expect(
            text == """
                bellhop: cannot start: database: \(folder) belongs to root (uid 0), but the service runs as uid 65532: \
                run chown 65532 \(folder), or mount a volume that this user owns

                """)
    }

    @Test(.enabled(if: BellhopProcess.canRunAsStranger, "only root can switch users"))
    func fileOfAnotherOwner_isNamedWithItsOwner() throws {
        let file = folder + "/a.sqlite"
        try Data().write(to: URL(fileURLWithPath: file))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder)
        let (status, text) = try serve(file, as: BellhopProcess.stranger)
        #expect(status == 78)
        #expect(text.contains("\(file) belongs to root (uid 0)"))
        #expect(text.hasSuffix(": run chown 65532 \(file)\n"))
    }

    /// Usually left behind by an administrator's tool.
    @Test(
        .enabled(if: BellhopProcess.canRunAsStranger, "only root can switch users"),
        arguments: ["-wal", "-shm"])
    func logOfAnotherOwner_isNamedWithItsOwner(_ suffix: String) throws {
        let file = folder + "/a.sqlite"
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder)
        try Data().write(to: URL(fileURLWithPath: file))
        #expect(chown(file, 65532, 65532) == 0)
        try Data().write(to: URL(fileURLWithPath: file + suffix))
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file + suffix)
        let (status, text) = try serve(file, as: BellhopProcess.stranger)
        #expect(status == 78)
        #expect(text.contains("\(file + suffix) belongs to root (uid 0)"), "\(text)")
    }

    /// libpq's own messages would contain the password, or a part of it.
    @Test(arguments: [
        "postgres://bellhop:pla%nted@db.example/bellhop", "postgres://bellhop:planted@[::1/bellhop",
        "postgres://bellhop:planted/x@db.example/bellhop", "postgres://bellhop:12/planted@db.example/bellhop",
        "postgres://bellhop:x@planted@db.example/bellhop",
        "postgres://bellhop:planted@db.example/bellhop?ssl_mode=planted",
        "postgres://bellhop:planted@db.example:54x/bellhop",
    ])
    func malformedDatabaseURL_isNotEchoed(_ url: String) throws {
        let settings = ["JWT_SECRET": TestService.secret, "DATABASE": url]
        let commands = [
            ["serve"], ["doctor"], ["migrate"], ["check"], ["backup", folder + "/copy"],
            ["source", "setup", "--tables", "todo", "--database", url],
        ]
        for command in commands {
            let (status, text) = try BellhopProcess(command, settings: settings).finish()
            #expect(status != 0 && status != 75, "\(command): \(text)")
            #expect(text.contains("URL cannot be read"), "\(command): \(text)")
            for part in ["planted", "pla%", "nted"] { #expect(!text.contains(part), "\(command): \(text)") }
        }
    }

    /// Such a role would let every login of the server read the tables.
    @Test(arguments: ["public", "PUBLIC", "none", "pg_monitor", ""])
    func publicRoleAsReader_isRefused(_ role: String) throws {
        let (status, text) = try BellhopProcess(["source", "setup", "--sql", "--tables", "todo", "--role", role])
            .finish()
        #expect(status == 64)
        #expect(text.contains("cannot be used as the reader"), "\(text)")
        #expect(!text.contains("GRANT"))
    }

    /// The listener's name suggests another machine, and TLS does not verify the server.
    @Test func serverThatIsNotVerified_isWarnedOf() throws {
        let database = try TestDatabase(on: PostgresServer.shared())
        defer { database.drop() }
        let settings = Self.settings.merging([
            "DATABASE": database.url, "DATABASE_LISTEN": "postgres://bellhop:planted@127.1:1/x?sslmode=require",
        ]) { $1 }
        let service = try BellhopProcess(["serve"], settings: settings)
        _ = try service.awaitPort()
        service.terminate()
        let (status, text) = service.finish()
        #expect(status == 0)
        let warnings = text.split(separator: "\n").filter { $0.contains("is not verified") }
        #expect(warnings.count == 1, "\(text)")
        for part in ["BELLHOP_DATABASE_LISTEN", "host=127.1", "sslmode=require", "verify-full"] {
            #expect(warnings.first?.contains(part) == true, "\(text)")
        }
        #expect(!text.contains("planted"))
    }

    @Test func missingSecret_isNamedByItsVariable() throws {
        let (status, text) = try BellhopProcess(["serve"]).finish()
        #expect(status == 78)
        #expect(text.contains("set BELLHOP_JWT_ISSUER (the URL of your identity provider), BELLHOP_JWKS"))
    }

    /// The exit code is always 78, however far the database threads have got when the process ends.
    @Test func databaseWithoutItsTables_stopsTheStart_alwaysWith78() throws {
        let server = try PostgresServer.shared()
        let name = try server.makeDatabase()
        defer { server.drop(name) }
        try server.run([
            """
            DO $$ BEGIN CREATE ROLE bellhop_service; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$
            """
        ])
        try server.makeLogin()
        let settings = Self.settings.merging(["DATABASE": server.url("bellhop", name)]) { $1 }
        for _ in 0..<effort(quick: 6, full: 24, long: 200) {
            let (status, text) = try BellhopProcess(["serve"], settings: settings).finish()
            #expect(status == 78, "\(text)")
            #expect(text.contains("cannot start: database: "), "\(text)")
        }
    }

    /// Waiting creates neither a database nor a role.
    @Test(arguments: [("postgres", "t_missing", "CREATE DATABASE"), ("t_stranger", "postgres", "CREATE ROLE")])
    func missingDatabaseOrRole_needsTheOperator(_ user: String, _ database: String, _ remedy: String) throws {
        let settings = Self.settings.merging(["DATABASE": try PostgresServer.shared().url(user, database)]) { $1 }
        let (status, text) = try BellhopProcess(["serve"], settings: settings).finish()
        #expect(status == 78 && text.contains(remedy), "\(text)")
    }

    @Test func portOfAnotherService_stopsTheStart_alsoWithSeveralReactors() throws {
        let service = try TestService.start(["reactors": "2"])
        let settings = [
            "JWT_SECRET": TestService.secret, "PORT": "\(service.port)", "REACTORS": "2", "DATABASE": "sqlite::memory:",
        ]
        let (status, text) = try BellhopProcess(["serve"], settings: settings, through: ["timeout", "20"]).finish()
        // With this status the unit restarts the service, because the other process may be about to end.
        #expect(status == 75)
        #expect(
            text.contains("cannot listen on 127.0.0.1:\(service.port): another process is already listening there"),
            "\(text)")
    }

    /// Starts a service while another process holds a resource, and releases the resource once the service waits for
    /// it.
    ///
    /// The service waits for two seconds. On a busy machine the release may come later, so several starts are tried.
    private static func expectStart(
        after hold: () throws -> (settings: [String: String], release: () -> Void)
    ) throws {
        for _ in 0..<20 {
            let (settings, release) = try hold()
            let service = try BellhopProcess(["serve"], settings: settings)
            let isWaiting = service.says("Retrying for a short time.")
            release()
            #expect(isWaiting)
            guard service.says("Bellhop is listening.") else {
                #expect(service.finish().status == 75)
                continue
            }
            service.terminate()
            #expect(service.finish().status == 0)
            return
        }
        Issue.record("no start used the released resource")
    }

    @Test func releasedPort_canBeBound() throws {
        try Self.expectStart {
            let other = try LoopbackListener()
            let settings = ["JWT_SECRET": TestService.secret, "PORT": "\(other.port)", "DATABASE": "sqlite::memory:"]
            return (settings, { other.stop() })
        }
    }

    @Test func releasedFile_canBeOpened() throws {
        let file = folder + "/a.sqlite"
        try Self.expectStart {
            let other = try DatabaseStore.open(DatabaseURL(file: file))
            return (Self.settings.merging(["DATABASE": "sqlite:\(file)"]) { $1 }, { other.close() })
        }
    }

    /// A second process is refused under another name of the file, and beside a process with removed files.
    @Test func openDatabase_refusesASecondProcess() throws {
        let (file, second) = (folder + "/a.sqlite", folder + "/b.sqlite")
        let store = try DatabaseStore.open(DatabaseURL(file: file))
        defer { store.close() }
        #expect(link(file, second) == 0)
        let linked = try BellhopProcess(["migrate", "--database", "sqlite:\(second)"]).finish()
        #expect(linked.status == 1)
        #expect(linked.text.contains("is in use by a process that opened it under another name"), "\(linked.text)")
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
            #expect(unlink(folder + "/" + name) == 0)
        }
        let beside = try BellhopProcess(["migrate", "--database", "sqlite:\(file)"]).finish()
        #expect(beside.status == 1)
        #expect(beside.text.contains("were removed, but process \(getpid()) still has them open"), "\(beside.text)")
    }

    @Test func controlCharactersOfRequests_doNotReachTheLog() throws {
        let settings = Self.settings.merging(["DATABASE": "sqlite::memory:", "LOG_REQUESTS": "true"]) { $1 }
        let service = try BellhopProcess(["serve"], settings: settings)
        let raw = try RawConnection(service.awaitPort())
        try raw.send("GET /v1/shops/%1B%5B2J%0Aforged%C2%9B HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = try raw.read(until: "\r\n\r\n")
        service.terminate()
        let (status, text) = service.finish()
        #expect(status == 0)
        #expect(text.contains("forged"))
        #expect(!text.contains("\u{1B}"))
        #expect(!text.contains("\u{9B}"))
        #expect(!text.contains("\nforged"))
    }

    /// A log line of a 404 is useless without the path. A long or unusual part of the path may be a secret.
    @Test func unknownPath_isLogged_withoutSecrets() throws {
        let settings = Self.settings.merging(["DATABASE": "sqlite::memory:", "LOG_REQUESTS": "true"]) { $1 }
        let service = try BellhopProcess(["serve"], settings: settings)
        let raw = try RawConnection(service.awaitPort())
        let token = String(repeating: "planted", count: 4)
        try raw.send("GET /v1/bagdes/\(token)/a%20b?ticket=planted HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = try raw.read(until: "\r\n\r\n")
        service.terminate()
        let text = service.finish().text
        #expect(text.contains("path=/v1/bagdes/…/…") && !text.contains("planted"), "\(text)")
    }

    @Test func lowDescriptorLimit_isAWarning() throws {
        let limits = ["DATABASE": "sqlite::memory:", "STREAMS_MAX": "100000", "CONNECTIONS_MAX": "10000"]
        let settings = Self.settings.merging(limits) { $1 }
        let service = try BellhopProcess(["serve"], settings: settings, through: ["prlimit", "--nofile=1000"])
        try service.awaitText("Bellhop is listening.")
        service.terminate()
        let (status, text) = service.finish()
        #expect(status == 0)
        let warnings = text.split(separator: "\n").filter { $0.contains(" warning ") }
        #expect(warnings.count == 2)
        for part in ["BELLHOP_STREAMS_MAX", "asked=100000", "holds=622", "RLIMIT_NOFILE=1000"] {
            #expect(warnings.first?.contains(part) == true, "\(part) in \(text)")
        }
        #expect(warnings.last?.contains("setting=BELLHOP_CONNECTIONS_MAX") == true)
    }

    /// A first start with the default settings has nothing to correct.
    @Test func defaultLimits_areLoweredWithoutAWarning() throws {
        let settings = Self.settings.merging(["DATABASE": "sqlite::memory:"]) { $1 }
        let service = try BellhopProcess(["serve"], settings: settings, through: ["prlimit", "--nofile=20000"])
        try service.awaitText("Bellhop is listening.")
        service.terminate()
        #expect(!service.finish().text.contains(" warning "))
    }

    /// Foundation would create folders for cookies and a cache, which the commands do not use.
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

import BellhopClient
import Foundation
import TestSupport
import Testing

@testable import Service

/// `bellhop doctor` for a machine, its settings and a file. Each of its findings is provoked.
@Suite(.timed) struct DoctorTests {
    static func findings(_ changes: [String: String], replicas: Int = 2) async throws -> [Finding] {
        let own = ["jwtSecret": TestService.secret, "streamsMax": "50", "connectionsMax": "50"]
        let settings = try TestService.settings(own.merging(changes) { $1 })
        var found: [Finding] = []
        await Examination(settings, replicas: replicas).examine { found.append($0) }
        return found
    }

    static func expect(
        _ grade: Finding.Grade, _ topic: String, _ text: String, in findings: [Finding],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let isFound = findings.contains {
            $0.grade == grade && $0.topic == topic && (text.isEmpty || $0.text.contains(text))
        }
        #expect(isFound, "\(grade) \(topic): \(text) in \(findings)", sourceLocation: sourceLocation)
        for finding in findings where finding.grade == .warning || finding.grade == .fault {
            #expect(finding.remedy?.isEmpty == false, "\(finding)", sourceLocation: sourceLocation)
        }
    }

    @Test func receiverOfWebhooks_isReached_orNot() async throws {
        let receiver = try ScriptedReceiver { _ in .status(405) }
        let settings = WebhookProbe.settings(receiver)
        Self.expect(.good, "webhooks", "127.0.0.1 answers", in: try await Self.findings(settings))
        receiver.stop()
        Self.expect(.fault, "webhooks", "unreachable", in: try await Self.findings(settings))
    }

    private static func doctor(
        _ arguments: [String] = [], _ settings: [String: String], through wrapper: [String] = []
    ) throws -> (status: Int32, text: String) {
        let own = ["JWT_SECRET": TestService.secret, "STREAMS_MAX": "50", "CONNECTIONS_MAX": "50", "PORT": "0"]
        let (status, text) = try BellhopProcess(
            ["doctor"] + arguments, settings: own.merging(settings) { $1 }, through: wrapper
        ).finish()
        #expect(!text.contains(TestService.secret))
        return (status, text)
    }

    /// Returns the contents of a folder with their modification dates.
    private static func content(of folder: String) throws -> [String: [String]] {
        let files = FileManager.default
        return Dictionary(
            uniqueKeysWithValues: try files.contentsOfDirectory(atPath: folder).filter { !$0.hasSuffix("-shm") }.map {
                name in
                let path = folder + "/" + name
                let date = try files.attributesOfItem(atPath: path)[.modificationDate] as? Date
                return (
                    name, ["\(date?.timeIntervalSince1970 ?? 0)", "\(files.contents(atPath: path)?.hashValue ?? 0)"]
                )
            })
    }

    /// Expects that all findings are good, except those about this machine's disks.
    private static func expectAllGood(_ file: String) throws {
        let (status, text) = try doctor(["--json"], ["DATABASE": "sqlite:\(file)"])
        #expect(status == 0, "\(text)")
        var topics: Set<String> = []
        for line in text.split(separator: "\n") {
            let finding = try JSON(parsing: Data(line.utf8))
            let topic = try #require(finding["topic"].string)
            topics.insert(topic)
            let isOfTheMachine = ["disk", "flushes", "temporary files"].contains(topic)
            #expect(isOfTheMachine || finding["grade"].string == "good", "\(line)")
        }
        #expect(
            topics == [
                "settings", "tables", "descriptors", "disk", "flushes", "database", "journal", "migrations",
                "temporary files", "keys",
            ])
    }

    @Test func serviceKeys_areNamedWithTheirLimits() async throws {
        let keys = ["a", "b", "c"].map(ServiceKeysTests.key)
        let found = try await Self.findings([
            "serviceKeys": "mail:\(keys[0]):tenant=A:can=publish+notify,jobs:\(keys[1]),jobs:\(keys[2])"
        ])
        let text = "service keys: jobs (all tenants, all capabilities, 2 keys); mail (tenant A, notify+publish)"
        Self.expect(.good, "keys", text, in: found)
        for key in keys { #expect(!"\(found)".contains(key)) }
    }

    @Test func soundService_isAllGood_runningOrNot() throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("test.sqlite")
        let service = try RunningBellhop(file)
        try Self.expectAllGood(file)
        #expect(service.stop().status == 0)
        let before = try Self.content(of: directory.path)
        try Self.expectAllGood(file)
        #expect(try Self.content(of: directory.path) == before, "the doctor changes no file")
    }

    @Test func doctor_leavesFilesOfAKilledService() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("test.sqlite")
        let service = try RunningBellhop(file)
        try await service.client(as: .service()).publish([.init(event: "order:changed", to: ["user:ada"], data: [:])])
        service.process.send(SIGKILL)
        _ = service.process.finish()
        let before = try Self.content(of: directory.path)
        #expect(before.keys.contains("test.sqlite-wal"))
        let found = try await Self.findings(["database": "sqlite:\(file)"])
        Self.expect(.good, "database", "is not damaged", in: found)
        #expect(try Self.content(of: directory.path) == before)
    }

    @Test func eachUnusableSetting_isNamed() throws {
        let settings = [
            "PORT": "eighty", "LOG_LEVEL": "loud", "JWT_SECRET": "short-secret", "TABLES": "/nowhere/tables.yaml",
            "WEBHOOK_URL": "ftp://planted",
        ]
        let (status, text) = try Self.doctor([], settings)
        #expect(status == 1)
        #expect(text.components(separatedBy: "✗ settings: ").count == 6, "\(text)")
        for name in ["PORT", "LOG_LEVEL", "JWT_SECRET", "TABLES", "WEBHOOK_URL"] {
            #expect(text.contains("BELLHOP_\(name)"))
        }
        #expect(!text.contains("short-secret") && !text.contains("planted"))
        #expect(try Self.doctor([], ["JWT_SECRET": ""]).text.contains("there is no key to verify tokens"))
    }

    @Test func settingsFileWithSecrets_thatOthersCanRead_isFound() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("jwtSecret: \(TestService.secret)\ndatabase: 'sqlite::memory:'\n", to: "b.yaml")
        #expect(chmod(file, 0o644) == 0)
        var text = try Self.doctor(["--config", file], [:]).text
        #expect(
            text.contains("! settings file: \(file) contains jwtSecret, but every user of this machine can read"),
            "\(text)")
        #expect(text.contains("run chmod o= \(file)"))
        #expect(chmod(file, 0o640) == 0)
        text = try Self.doctor(["--config", file], [:]).text
        #expect(text.contains("✓ settings file: only its owner and group can read"), "\(text)")
        // The package's settings file has no secrets, and every user may read it.
        let plain = try directory.write("database: 'sqlite::memory:'\nport: 0\n", to: "plain.yaml")
        #expect(chmod(plain, 0o644) == 0)
        #expect(try !Self.doctor(["--config", plain], [:]).text.contains("settings file"))
    }

    @Test func serverThatIsNotVerified_isAWarning() async throws {
        let found = try await Self.findings(["database": "postgres://bellhop@127.1:1/none"])
        Self.expect(.warning, "TLS", "127.1 is not verified (sslmode=prefer)", in: found)
    }

    @Test func warnings_failTheCheck_ifRequested() throws {
        let directory = try TemporaryDirectory()
        let settings = ["DATABASE": "sqlite:\(directory.file("new.sqlite"))", "STREAMS_MAX": "100000"]
        let few = ["prlimit", "--nofile=1000"]
        let (status, text) = try Self.doctor([], settings, through: few)
        #expect(status == 0)
        #expect(text.contains("! descriptors: 1000 allow ") && text.contains("BELLHOP_STREAMS_MAX"), "\(text)")
        #expect(try Self.doctor(["--strict"], settings, through: few).status == 1)
        #expect(try Self.content(of: directory.path).isEmpty, "the doctor creates no database")
    }

    /// The default limits are upper bounds. A new user's machine allows fewer, and has enough.
    @Test func defaultSettings_giveNoWarning_unlessFewStreamsAreLeft() throws {
        let directory = try TemporaryDirectory()
        let settings = ["DATABASE": "sqlite:\(directory.file("new.sqlite"))", "STREAMS_MAX": "", "CONNECTIONS_MAX": ""]
        func descriptors(_ limit: Int) throws -> [String] {
            let text = try Self.doctor([], settings, through: ["prlimit", "--nofile=\(limit)"]).text
            return text.split(separator: "\n").map(String.init).filter { $0.contains("descriptors:") }
        }
        #expect(try descriptors(20_000) == ["✓ descriptors: 20000, enough for 14600 streams and 5000 connections"])
        let few = try descriptors(1000)
        #expect(few.count == 1 && few[0].hasPrefix("! descriptors: 1000 allow only 622, but streamsMax is"), "\(few)")
    }

    @Test func portOfAnotherProgram_isFound_andTheServicesOwnIsGood() async throws {
        let memory = ["database": "sqlite::memory:"]
        let other = try LoopbackListener()
        defer { other.stop() }
        other.serve { close($0) }
        let taken = try await Self.findings(memory.merging(["port": "\(other.port)"]) { $1 })
        Self.expect(.fault, "address", "another program listens on 127.0.0.1:\(other.port)", in: taken)
        let service = try TestService.start()
        let own = try await Self.findings(memory.merging(["port": "\(service.port)"]) { $1 })
        Self.expect(.good, "address", "a Bellhop service answers on 127.0.0.1:\(service.port)", in: own)
        let foreign = try await Self.findings(memory.merging(["host": "192.0.2.1", "port": "8080"]) { $1 })
        Self.expect(.fault, "address", "the address does not belong to this machine", in: foreign)
    }

    @Test func everyUnknownName_isListed() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("prot: 1\nloglevel: info\n", to: "b.yaml")
        let arguments = ["--config", file, "--databas", "sqlite::memory:", "--nonsense"]
        let (status, text) = try Self.doctor(arguments, ["STREAM_MAX": "1", "ROOM": "2"])
        #expect(status == 1)
        for name in ["flag --databas;", "flag --nonsense;", "BELLHOP_STREAM_MAX;", "BELLHOP_ROOM;", "prot;", "level;"] {
            #expect(text.contains("✗ settings: unknown ") && text.contains(name), "\(name) in \(text)")
        }
        let (code, line) = try BellhopProcess(["serve"] + arguments, settings: ["ROOM": "2"]).finish()
        #expect(code == 78 && line.split(separator: "\n").count == 1, "\(line)")
        for name in ["--databas;", "--nonsense;", "BELLHOP_ROOM;", "prot;", "loglevel;"] {
            #expect(line.contains(name), "\(name) in \(line)")
        }
    }

    @Test func files_thatOthersMayRead_orThatAreDamaged_areFound() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("test.sqlite")
        _ = try RunningBellhop(file).stop()
        chmod(file, 0o644)
        let settings = ["database": "sqlite:\(file)"]
        var found = try await Self.findings(settings)
        Self.expect(.warning, "database", "can be read by other users of this machine (mode 644)", in: found)
        let handle = try #require(FileHandle(forUpdatingAtPath: file))
        try handle.seek(toOffset: 4096 * 4)
        try handle.write(contentsOf: Data(repeating: 0xA5, count: 4096 * 8))
        try handle.close()
        found = try await Self.findings(settings)
        #expect(found.contains { $0.grade == .fault && $0.topic == "database" }, "\(found)")
        found = try await Self.findings(["database": "sqlite:\(directory.path)/missing/test.sqlite"])
        Self.expect(.fault, "database", "is not writable: No such file or directory", in: found)
        found = try await Self.findings([
            "database": "sqlite:\(try directory.write("no database, but a text", to: "text"))"
        ])
        #expect(found.contains { $0.grade == .fault && $0.topic == "database" }, "\(found)")
        Self.expect(.warning, "database", "in memory", in: try await Self.findings(["database": "sqlite::memory:"]))
    }

    @Test func keys_areReportedOneByOne() async throws {
        var issuer = try Issuer()
        try issuer.add("k1")
        try issuer.publish(beside: [KeySetTests.useless[0].1, KeySetTests.useless[1].1])
        let memory = ["database": "sqlite::memory:", "jwtIssuer": "https://issuer.example"]
        var found = try await Self.findings(memory.merging(["jwks": issuer.file.path]) { $1 })
        Self.expect(.good, "keys", "the key set of https://issuer.example has k1 (ES256)", in: found)
        Self.expect(.warning, "keys", "key 1: its key type is not supported", in: found)
        Self.expect(.warning, "keys", "every token of https://issuer.example is accepted", in: found)
        #expect(found.contains { $0.remedy == "set BELLHOP_JWT_AUDIENCE or BELLHOP_JWT_REQUIRE" })
        Self.expect(.note, "keys", "do several organizations share https://issuer.example?", in: found)
        found = try await Self.findings(memory.merging(["jwks": "http://127.0.0.1:1/keys?secret=planted"]) { $1 })
        Self.expect(
            .fault, "keys", "the keys of https://issuer.example are not usable: http://127.0.0.1:1/keys: ", in: found)
        #expect(!"\(found)".contains("planted"))
        let unusable = issuer.file.path + ".none"
        try #"{"keys": [{"kty": "oct"}]}"#.write(toFile: unusable, atomically: true, encoding: .utf8)
        found = try await Self.findings(memory.merging(["jwks": unusable]) { $1 })
        Self.expect(.fault, "keys", "no key of https://issuer.example can verify a token", in: found)
    }

    @Test func machineMeasurements_areRated() {
        #expect(MachineCheck.disk(freeBytes: 10 << 20, of: "x").grade == .fault)
        #expect(MachineCheck.disk(freeBytes: 500 << 20, of: "x").grade == .warning)
        #expect(MachineCheck.disk(freeBytes: 5 << 30, of: "x") == .good("disk", "5 GiB free in x"))
        #expect(MachineCheck.flushes([0.001, 0.002, 0.003]).grade == .good)
        #expect(MachineCheck.flushes([0.001, 0.03, 0.04]).grade == .warning)
        #expect(MachineCheck.flushes([0.001, 0.002, 0.6]).grade == .warning)
        #expect(MachineCheck.temporaryFolder("/nowhere").grade == .warning)
        #expect(ServerCheck.latency([0.0004, 0.0005, 0.1]).grade == .good)
        #expect(ServerCheck.latency([0.0004, 0.02, 0.1]).grade == .warning)
        #expect(
            ServerCheck.clock(secondsAhead: -0.5, of: "x")
                == .good("clock", "this clock is 0.5 s behind the clock of x"))
        #expect(ServerCheck.clock(secondsAhead: 5, of: "x").grade == .warning)
        #expect(ServerCheck.clock(secondsAhead: -31, of: "x").grade == .fault)
        #expect(ServerCheck.connections(each: 14, replicas: 2, free: 28, isPooled: false).grade == .good)
        #expect(ServerCheck.connections(each: 14, replicas: 3, free: 28, isPooled: false).grade == .fault)
        #expect(ServerCheck.connections(each: 14, replicas: 3, free: 28, isPooled: true).grade == .warning)
    }
}

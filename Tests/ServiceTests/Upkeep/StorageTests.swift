import BellhopClient
import Foundation
import TestSupport
import Testing

/// Failures of the built service's files: its answers, its reports, and its recovery.
@Suite(.timed) struct StorageTests {
    private let directory: TemporaryDirectory
    private let folder: String
    private var file: String { folder + "/b.sqlite" }

    init() throws {
        directory = try TemporaryDirectory()
        folder = directory.file("data")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    }

    private func notify(_ service: RunningBellhop, _ id: String) async throws -> ServiceAnswer {
        try await service.call("POST", "/v1/events", as: .service(), model: NotificationsTests.event(id, to: "ada"))
    }

    // MARK: Files that are gone

    enum Loss: String, CaseIterable {
        case fileRemoved, fileReplaced, fileReplacedByAnEmptyOne, logRemoved, logReplaced, indexRemoved, folderRenamed

        func happen(to file: String) throws {
            let files = FileManager.default
            func replace(_ path: String, by data: Data) throws {
                try data.write(to: URL(fileURLWithPath: path + ".new"))
                try files.removeItem(atPath: path)
                try files.moveItem(atPath: path + ".new", toPath: path)
            }
            switch self {
            case .fileRemoved: try files.removeItem(atPath: file)
            case .fileReplaced: try replace(file, by: Data(contentsOf: URL(fileURLWithPath: file)))
            case .fileReplacedByAnEmptyOne: try replace(file, by: Data())
            case .logRemoved: try files.removeItem(atPath: file + "-wal")
            case .logReplaced: try replace(file + "-wal", by: Data("somebody else's".utf8))
            case .indexRemoved: try files.removeItem(atPath: file + "-shm")
            case .folderRenamed:
                let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
                try files.moveItem(atPath: folder, toPath: folder + ".old")
            }
        }
    }

    /// Until the service detects the loss, its answers stay the same: no client ever sees an empty database.
    @Test(arguments: Loss.allCases)
    func filesThatAreGone_areNoticed_andNeverReadAsEmpty(_ loss: Loss) async throws {
        let service = try RunningBellhop(file)
        #expect(try await notify(service, "e1").status == 201)
        try loss.happen(to: file)
        try await eventually("the loss is detected") {
            let badges = try await service.call("GET", "/v1/badges", as: .user("ada"))
            let list = try await service.call("GET", "/v1/notifications", as: .user("ada"))
            if badges.status == 200 { #expect(badges.json["bell"].int == 1) }
            if list.status == 200 { #expect(list.json["items"].array?.count == 1) }
            return badges.status != 200
        }
        for answer in [try await notify(service, "e2"), try await service.call("GET", "/v1/badges", as: .user("ada"))] {
            #expect(answer.refusal == "503 storage.moved")
            #expect(answer[header: "Retry-After"] == "30")
        }
        let ticket = try await service.call("POST", "/v1/stream-tickets", as: .user("ada"))
        #expect(ticket.refusal == "503 storage.moved")
        #expect(try await service.call("GET", "/v1/stream", as: .user("ada")).refusal == "503 storage.moved")
        let ready = try await service.call("GET", "/readyz")
        #expect(ready.refusal == "503 not_ready")
        #expect(ready.json["detail"].string?.contains("was removed, moved or replaced") == true)
        #expect(try await service.call("GET", "/healthz").status == 200)
        #expect(try await service.call("GET", "/metrics").text.contains("bellhop_database_trouble{reason=\"moved\"} 1"))
        try service.process.awaitText("Writes are failing.")
        let (status, text) = service.stop()
        #expect(status == 0)
        #expect(text.components(separatedBy: "Writes are failing.").count == 2, "\(text)")
        #expect(!text.contains("was not completed"), "\(text)")
        // The file that is there now is not the service's, and must stay untouched.
        if loss == .logReplaced {
            #expect(try String(contentsOfFile: file + "-wal", encoding: .utf8) == "somebody else's")
        }
    }

    /// An acknowledged write must not have gone into a file that had already been deleted.
    @Test func writesAfterTheFileIsRemoved_areNeverAcknowledged() async throws {
        let service = try RunningBellhop(file)
        #expect(try await notify(service, "e1").status == 201)
        try Loss.fileRemoved.happen(to: file)
        #expect(try await notify(service, "e2").refusal == "503 storage.moved")
    }

    // MARK: Disks that are full

    /// A cause of full storage, and its end.
    enum Scarcity: String, CaseIterable {
        /// A file system of four megabytes, filled up by another file.
        case disk

        /// A mount in a private namespace: it exists as long as the service, and only the service sees it.
        private static let mounting =
            ["unshare"] + (geteuid() == 0 ? ["-m"] : ["-rm"])
            + ["sh", "-c", "mount -t tmpfs -o size=4m none \"$0\" && exec \"$@\""]

        static func canMount(at folder: String) -> Bool {
            (try? BellhopProcess(["--version"], through: mounting + [folder]).finish())?.status == 0
        }

        func wrapper(_ folder: String) -> [String] {
            switch self {
            case .disk: Self.mounting + [folder]
            }
        }

        func begin(_ process: BellhopProcess, _ folder: String) throws {
            guard self == .disk else { return }
            let filler = "/proc/\(process.identifier)/root\(folder)/filler"
            let descriptor = open(filler, O_WRONLY | O_CREAT, 0o600)
            try #require(descriptor >= 0, "\(filler)")
            defer { close(descriptor) }
            let bytes = [UInt8](repeating: 1, count: 4096)
            while write(descriptor, bytes, bytes.count) > 0 {}
            #expect(errno == ENOSPC)
        }

        func end(_ process: BellhopProcess, _ folder: String) throws {
            switch self {
            case .disk: #expect(unlink("/proc/\(process.identifier)/root\(folder)/filler") == 0)
            }
        }
    }

    @Test(arguments: Scarcity.allCases)
    func fullDisk_isReported_andRecoveredFrom(_ scarcity: Scarcity) async throws {
        if scarcity == .disk, !Scarcity.canMount(at: folder) { return }
        let service = try RunningBellhop(file, through: scarcity.wrapper(folder))
        var stored = 0
        /// The service answers only 201 or 503 `storage.full`.
        func attempt() async throws -> Bool {
            let answer = try await notify(service, UUID().uuidString)
            if answer.status == 201 {
                stored += 1
                return true
            }
            #expect(answer.refusal == "503 storage.full")
            #expect(answer[header: "Retry-After"] == "30")
            return false
        }
        #expect(try await attempt())
        #expect(try await service.call("GET", "/readyz").status == 200)
        try scarcity.begin(service.process, folder)
        // The write-ahead log may still have room in its allocated space.
        while try await attempt() { try #require(stored < 450) }
        let ready = try await service.call("GET", "/readyz")
        #expect(ready.refusal == "503 not_ready")
        #expect(ready.json["detail"].string?.contains("full") == true, "\(ready.json)")
        #expect(try await service.call("GET", "/metrics").text.contains("bellhop_database_trouble{reason=\"full\"} 1"))
        for _ in 0..<20 { _ = try await attempt() }
        // Readers are not affected.
        #expect(try await service.client("ada").getBadges().value.bell == stored)
        try service.process.awaitText("Writes are failing.")
        try scarcity.end(service.process, folder)
        try service.process.awaitText("There is free space again")
        #expect(try await service.call("GET", "/readyz").status == 200)
        #expect(try await attempt())
        #expect(try await service.client("ada").getBadges().value.bell == stored)
        let (status, text) = service.stop()
        #expect(status == 0)
        for line in ["Writes are failing.", "There is free space again"] {
            #expect(text.components(separatedBy: line).count == 2, "\(text)")
        }
        #expect(!text.contains("was not completed"), "\(text)")
        #expect(!text.contains("Upkeep failed"), "\(text)")
    }

    /// An erasure needs room for two copies of the file. Without it, the log says so, and writes go on.
    @Test func erasureWithoutRoom_isReported() async throws {
        if !Scarcity.canMount(at: folder) { return }
        let service = try RunningBellhop(file, through: Scarcity.disk.wrapper(folder))
        #expect(try await notify(service, "e1").status == 201)
        try Scarcity.disk.begin(service.process, folder)
        // Less than the size of the file, and enough for some writes.
        let filler = "/proc/\(service.process.identifier)/root\(folder)/filler"
        let size = try #require(FileManager.default.attributesOfItem(atPath: filler)[.size] as? Int)
        #expect(truncate(filler, size - (700 << 10)) == 0)
        #expect(try await service.call("DELETE", "/v1/users/ada", as: .service()).status == 202)
        try service.process.awaitText("erasures wait, because the database file cannot be rewritten")
        let erasure = try await service.call("GET", "/v1/users/ada/erasure", as: .service())
        #expect(erasure.json["state"].string == "pending")
        // The round has ended without it: the user may be named again.
        #expect(try await notify(service, "e2").status == 201)
        let (status, text) = service.stop()
        #expect(status == 0)
        #expect(text.components(separatedBy: "erasures wait").count == 2, "\(text)")
    }
}

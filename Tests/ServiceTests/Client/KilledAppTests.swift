import BellhopClient
import Foundation
import TestSupport
import Testing

/// An app that is killed while it writes and then restarted, while the service restarts too (R-VIS-NFR-2.3).
@Suite(.timed, .timeLimit(.minutes(5)))
struct KilledAppTests {
    private static let writer = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appendingPathComponent("outbox-writer").path
    private static let count = effort(quick: 120, full: 300, long: 1000)

    private let service: TestService
    private let directory: TemporaryDirectory

    init() throws {
        service = try TestService.start(at: TestService.morning)
        directory = try TemporaryDirectory()
    }

    private func delivered(_ id: String) async throws -> [Int] {
        let messages = service.client("ben").messagePages(id: id, since: 0, limit: 100).items
        var numbers: [Int] = []
        for try await message in messages { numbers.append(Int(message.id.dropFirst()) ?? -1) }
        return numbers
    }

    /// Returns the numbers of the messages on disk.
    private func stored() async throws -> [Int] {
        let storage = FileStorage(directory: URL(fileURLWithPath: directory.path))
        var numbers: [Int] = []
        for key in try await storage.keys(beginningWith: "") where key.contains("outbox/") {
            guard let data = try await storage.get(key) else { continue }
            let id = try JSON(parsing: data)["body"]["id"].string ?? ""
            numbers.append(Int(id.dropFirst()) ?? -1)
        }
        return numbers
    }

    private func start(_ id: String, from number: Int) throws -> ChildProcess {
        let token = service.token(for: .user("ada"))
        return try ChildProcess(
            [Self.writer, service.baseURL, token, id, directory.path, "\(number)", "\(Self.count)"])
    }

    @Test func killedApp_sendsEachWriteOnce_inOrder() async throws {
        let made = try await service.client("ada").createConversation(.init(memberIds: ["ben"]))
        let id = made.value.id
        var next = 0
        for round in 1...effort(quick: 4, full: 8, long: 16) {
            let app = try start(id, from: next)
            // The app is killed at a point where some messages are sent, some are stored, and some are neither.
            let goal = min(Self.count - 1, next + 5 * round)
            try await eventually("the app has reached its goal") {
                let known = try await delivered(id) + stored()
                return (known.max() ?? -1) >= goal
            }
            if round.isMultiple(of: 3) { try await service.restart(with: ["port": "\(service.port)"]) }
            app.send(SIGKILL)
            app.wait()
            next = (try await (delivered(id) + stored()).max() ?? -1) + 1
        }
        let last = try start(id, from: next)
        let ended = last.finish()
        #expect(ended.status == 0, "\(ended.text)")
        #expect(try await delivered(id) == Array(0..<Self.count))
        #expect(try await stored().isEmpty)
    }
}

import Foundation
import TestSupport
import Testing

@testable import Database

/// A process that is killed between its commits. The child process is this test binary, started a second time.
@Suite(.timed) struct CrashTests {
    private static let placeVariable = "DATABASE_CRASH_TEST_PLACE"
    private static let tables = Migration(
        "0001", sql: ["CREATE TABLE a (id TEXT PRIMARY KEY) STRICT", "CREATE TABLE b (id TEXT PRIMARY KEY) STRICT"])

    /// Does nothing in an ordinary run. In the child process, it writes jobs until it is killed. It records each
    /// acknowledged job in a file with `write(2)`, whose effect survives a kill.
    @Test func child_writesUntilItIsKilled() throws {
        guard let place = ProcessInfo.processInfo.environment[Self.placeVariable] else { return }
        let store = try DatabaseStore.open(.file(place + "/a.sqlite"))
        try store.migrate([Self.tables])
        let acknowledged = open(place + "/acknowledged", O_WRONLY | O_CREAT | O_APPEND, 0o600)
        while true {
            let id = UUID().uuidString
            do {
                try store.write(
                    { db in
                        try db.run("INSERT INTO a VALUES (\(id))")
                        try db.run("INSERT INTO b VALUES (\(id))")
                    },
                    completion: { result in
                        guard case .success = result else { return }
                        let line = Array((id + "\n").utf8)
                        _ = write(acknowledged, line, line.count)
                    })
            } catch {
                // The queue is full. The test retries at the speed of the disk.
                sched_yield()
            }
        }
    }

    @Test func killedProcess_keepsAcknowledgedWrites_andNoPartialOnes() throws {
        let directory = try TemporaryDirectory()
        let log = directory.file("acknowledged")
        for _ in 1...3 {
            let before = lines(of: log).count
            let child = try start(in: directory)
            let deadline = Date().addingTimeInterval(patience / .seconds(1))
            while lines(of: log).count < before + 500 {
                guard child.isRunning, Date() < deadline else {
                    child.send(SIGKILL)
                    Issue.record("the child acknowledged only \(lines(of: log).count - before) jobs")
                    return
                }
                sched_yield()
            }
            // The running child holds the lock; the kernel releases it when the child is killed.
            #expect(throws: DatabaseError.self) { try DatabaseStore.open(.file(directory.file("a.sqlite"))) }
            child.send(SIGKILL)
            child.wait()
            let store = try DatabaseStore.open(.file(directory.file("a.sqlite")))
            let inA = try store.read { Set(try $0.rows("SELECT id FROM a") { try $0.text(0) }) }
            let inB = try store.read { Set(try $0.rows("SELECT id FROM b") { try $0.text(0) }) }
            #expect(inA == inB)
            #expect(Set(lines(of: log)).subtracting(inA).isEmpty)
            #expect(try store.integrityCheck() == [])
            store.close()
        }
    }

    private func start(in directory: TemporaryDirectory) throws -> ChildProcess {
        let tests = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
        return try ChildProcess(
            [tests, "--testing-library", "swift-testing", "--filter", "child_writesUntilItIsKilled"],
            environment: ProcessInfo.processInfo.environment.merging([Self.placeVariable: directory.path]) { $1 },
            dropsErrors: true)
    }

    private func lines(of path: String) -> [String] {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
        // The last line may be incomplete.
        return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    }
}

import Foundation
import Testing

/// The order of the rooms: each knows only those below it.
extension TidyTests {
    /// Ground floor first. A room is a folder below Sources with all below it; `X/*` is a room for each folder of X; rooms
    /// of one line do not know one another.
    private static let floors: [[String]] = [
        ["Threads", "Cryptography"],
        ["Visibility", "MicroHTTP", "OutboundHTTP", "BellhopClient"],
        ["Values"],
        ["Realtime", "Rows"],
        ["Domain"],
        ["Database"],
        ["Database/SQLite", "Database/PostgreSQL"],
        ["Database/Opening"],
        ["Service/Configuration"],
        ["Service/Tracing"],
        ["Service/Identity"],
        ["Service/Transactions"],
        ["Service/HTTP"],
        ["Service/Streams"],
        ["Service/Features/*"],
        ["Service/App", "Service"],
        ["bellhop"],
    ]

    private struct Place: Equatable {
        let floor: Int
        let room: String
    }

    /// The innermost room that a folder belongs to.
    private static func place(of folder: Substring) -> Place? {
        let found = floors.enumerated().flatMap { floor, rooms in
            rooms.compactMap { room -> Place? in
                let name = room.hasSuffix("/*") ? String(room.dropLast(2)) : room
                guard folder == name || folder.hasPrefix(name + "/") else { return nil }
                let depth = name.split(separator: "/").count + (room.hasSuffix("/*") ? 1 : 0)
                return Place(floor: floor, room: folder.split(separator: "/").prefix(depth).joined(separator: "/"))
            }
        }
        return found.max { ($0.room.count, $0.floor) < ($1.room.count, $1.floor) }
    }

    private static let sourceMap = Result {
        SourceMap(
            try files(under: ["Sources"], endingWith: ".swift").map {
                (String($0.path.dropFirst("Sources/".count)), $0.text)
            })
    }

    @Test func rooms_knowOnlyThoseBelowThem() throws {
        let map = try Self.sourceMap.get()
        #expect(map.arrows.count > 1_000, "types are found at all")
        for source in map.sources.values {
            #expect(Self.place(of: source.room) != nil, "\(source.path) lies in no room")
        }
        for arrow in Set(map.arrows).sorted(by: { ($0.from, $0.type) < ($1.from, $1.type) }) {
            guard let from = map.sources[arrow.from].flatMap({ Self.place(of: $0.room) }),
                let to = map.sources[arrow.to].flatMap({ Self.place(of: $0.room) })
            else { continue }
            if from.room == to.room || from.floor > to.floor { continue }
            Issue.record("against the order: \(arrow.from) names \(arrow.type) of \(arrow.to)")
        }
    }

    /// Files that name one another are read together: more than a handful is a room that nobody can enter by one door.
    @Test func circlesOfFiles_areSmall() throws {
        for circle in try Self.sourceMap.get().circles {
            #expect(circle.count <= 6, "\(circle.count) files name one another: \(circle.joined(separator: ", "))")
        }
    }

    // MARK: Threads

    /// A lock that stands beside its variables guards them by good will; in `Locked` and `Monitor` nobody reaches them
    /// without it. BellhopClient has a `Locked` and a thread of its own, because apps build that module and none of the
    /// service's.
    @Test func locksAndThreads_areMadeInOneModule() throws {
        let words = ["NSLock", "NSCondition", "NSRecursiveLock", "DispatchSemaphore", "pthread_create", "Thread("]
        let own = ["Locked.swift", "Streams/StreamTransfer+Linux.swift"].map { "Sources/BellhopClient/\($0)" }
        for file in try Self.files(under: ["Sources"], endingWith: ".swift")
        where !file.path.hasPrefix("Sources/Threads/") && !own.contains(file.path) {
            for (number, line) in file.lines.enumerated() {
                let code = line.range(of: "//").map { line[..<$0.lowerBound] } ?? line[...]
                for word in words where code.contains(word) && !code.contains("LoopThread(") {
                    Issue.record("\(file.path):\(number + 1) has \(word)")
                }
            }
        }
    }

    /// The wall clock may be set back: a wait that it bounds would last until the hour comes round again.
    @Test func waits_areBoundedByTheTimeThatPasses() throws {
        for file in try Self.files(under: ["Sources"], endingWith: ".swift") {
            // Behind #else stands what other systems than the service's do.
            let own = file.text.components(separatedBy: "#else").first ?? ""
            for word in ["timeIntervalSinceNow", "wait(until:", "pthread_cond_t()"] where own.contains(word) {
                #expect(word == "pthread_cond_t()" && own.contains("CLOCK_MONOTONIC"), "\(file.path) has \(word)")
            }
        }
    }

    /// Each one is a promise that no compiler checks.
    @Test func uncheckedSendable_isRare() throws {
        let found = try Self.files(under: ["Sources"], endingWith: ".swift").flatMap { file in
            file.lines.filter { $0.contains("@unchecked Sendable {") }.map { "\(file.path): \($0)" }
        }
        #expect(found.count <= 20, "\(found.count): \(found.joined(separator: "\n"))")
    }

    @Test func sourceWords_leaveCommentsAndTextsOut() {
        let words = SourceWords(
            """
            import Foundation // Other
            /* Not this */ struct Box<Item> { enum Inner {} ; let text = "a Word \\(Shown.of("Deep \\(Deeper())")) \\" Quoted" }
            private final class Next: Base.Nested {}
            """)
        #expect(words.imported == ["Foundation"])
        #expect(words.declared == ["Box", "Next"])
        #expect(words.named == ["Box", "Item", "Inner", "Shown", "Deeper", "Next", "Base", "Nested"])
    }
}

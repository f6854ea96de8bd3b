import Foundation
import Testing

/// The layers of the code: each folder may use only those below it.
extension TidyTests {
    /// The layers, lowest first. A room is a folder below Sources with its subfolders; `X/*` makes each subfolder of
    /// X a room. Rooms of one layer must not use one another.
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

    /// Returns the innermost room that contains a folder.
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

    @Test func folders_useLowerFoldersOnly() throws {
        let map = try Self.sourceMap.get()
        #expect(map.arrows.count > 1_000, "the search must find types")
        for source in map.sources.values {
            #expect(Self.place(of: source.room) != nil, "\(source.path) belongs to no room")
        }
        for arrow in Set(map.arrows).sorted(by: { ($0.from, $0.type) < ($1.from, $1.type) }) {
            guard let from = map.sources[arrow.from].flatMap({ Self.place(of: $0.room) }),
                let to = map.sources[arrow.to].flatMap({ Self.place(of: $0.room) })
            else { continue }
            if from.room == to.room || from.floor > to.floor { continue }
            Issue.record("wrong direction: \(arrow.from) uses \(arrow.type) of \(arrow.to)")
        }
    }

    /// Files that refer to one another in a cycle must be read together, so cycles stay small.
    @Test func fileCycles_areSmall() throws {
        for circle in try Self.sourceMap.get().circles {
            #expect(circle.count <= 6, "\(circle.count) files name one another: \(circle.joined(separator: ", "))")
        }
    }

    // MARK: Threads

    /// A lock beside its variables guards them only by convention; `Locked` and `Monitor` enforce it. BellhopClient
    /// has its own `Locked` and thread, because apps build that module without the service's modules.
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

    /// The wall clock may be set back, and a wait bounded by it would then last until the clock reaches the deadline
    /// again.
    @Test func waits_areBoundedByTheTimeThatPasses() throws {
        for file in try Self.files(under: ["Sources"], endingWith: ".swift") {
            // The code after #else is for other systems than the service's.
            let own = file.text.components(separatedBy: "#else").first ?? ""
            for word in ["timeIntervalSinceNow", "wait(until:", "pthread_cond_t()"] where own.contains(word) {
                #expect(word == "pthread_cond_t()" && own.contains("CLOCK_MONOTONIC"), "\(file.path) has \(word)")
            }
        }
    }

    /// Each one is a promise that the compiler does not check.
    @Test func uncheckedSendable_isRare() throws {
        let found = try Self.files(under: ["Sources"], endingWith: ".swift").flatMap { file in
            file.lines.filter { $0.contains("@unchecked Sendable {") }.map { "\(file.path): \($0)" }
        }
        #expect(found.count <= 20, "\(found.count): \(found.joined(separator: "\n"))")
    }

    @Test func sourceMap_skipsCommentsAndStrings() {
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

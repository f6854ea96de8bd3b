import Foundation
import Testing

/// The layers of the code: each folder may use only those below it.
extension TidyTests {
    /// The layers, lowest first, as the diagram of Docs/architecture.md lists them. A room is a folder below Sources
    /// with its subfolders; `X/*` makes each subfolder of X a room. Rooms of one layer must not use one another.
    private static let floors: [[String]] = {
        let page = try? String(contentsOf: root.appendingPathComponent("Docs/architecture.md"), encoding: .utf8)
        return rooms(in: page ?? "")
    }()

    /// Returns the rooms of the first code block. Commas separate the rooms of a line, and two spaces end them.
    private static func rooms(in page: String) -> [[String]] {
        let blocks = page.components(separatedBy: "\n```\n")
        guard blocks.count > 1 else { return [] }
        return blocks[1].components(separatedBy: "\n").reversed().map { line in
            let rooms = line.trimmingCharacters(in: .whitespaces).components(separatedBy: "  ").first ?? ""
            return rooms.components(separatedBy: ", ")
        }
    }

    /// The targets of Package.swift, and for each the quoted words of its dependencies.
    private static func targets() throws -> [String: Set<String>] {
        let package = try String(contentsOf: root.appendingPathComponent("Package.swift"), encoding: .utf8)
        let list = package.components(separatedBy: "    targets: [").dropFirst().joined()
        var targets: [String: Set<String>] = [:]
        for target in list.components(separatedBy: "\n        .") {
            let words = target.components(separatedBy: "\"").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
            guard let name = words.first else { continue }
            targets[name] = Set(words.dropFirst())
        }
        return targets
    }

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
                (String($0.path.dropFirst("Sources/".count)), try code(of: $0))
            })
    }

    /// Package.swift lists no dependency upwards, and a module imports what Package.swift lists for it.
    @Test func modules_dependOnLowerModulesOnly() throws {
        let targets = try Self.targets()
        var heights: [String: ClosedRange<Int>] = [:]
        for (floor, rooms) in Self.floors.enumerated() {
            for room in rooms {
                let folder = Self.root.appendingPathComponent("Sources/\(room.replacing("/*", with: ""))").path
                #expect(FileManager.default.fileExists(atPath: folder), "Docs/architecture.md: there is no \(room)")
                let module = String(room.prefix { $0 != "/" })
                heights[module] = (heights[module]?.lowerBound ?? floor)...floor
            }
        }
        #expect(heights.count > 10, "the search must find modules")
        for (module, own) in heights {
            #expect(targets[module] != nil, "Package.swift has no target \(module)")
            for dependency in targets[module] ?? [] {
                guard let other = heights[dependency] else { continue }
                #expect(other.upperBound < own.lowerBound, "Package.swift: \(module) depends on \(dependency)")
            }
        }
        for file in try Self.files(under: ["Sources"], endingWith: ".swift") {
            let module = String(file.path.split(separator: "/")[1])
            for (number, line) in file.lines.enumerated() where line.drop(while: { $0 == " " }).hasPrefix("import ") {
                let name = String(line.split(separator: " ").last?.split(separator: ".").first ?? "")
                guard targets[name] != nil else { continue }
                #expect(targets[module]?.contains(name) == true, "\(file.path):\(number + 1) imports \(name)")
            }
        }
    }

    /// A small type with one user is read with it, so it stands beside it.
    @Test func smallTypes_standBesideTheirUser() throws {
        // `Limits.swift` is the same file in many folders, each command of `bellhop` is one file, and generated types stay
        // in their files.
        let found = try Self.sourceMap.get().smallTypes(linesMax: 20).filter { small in
            !small.home.hasSuffix("Limits.swift") && !small.home.hasPrefix("bellhop/Commands/")
                && !small.home.hasPrefix("BellhopClient/Generated/")
        }
        // Types of BellhopClient with a better place: parts of the bell, whose file would become too long, types beside
        // the protocol that they implement, one file for each platform, and what BellhopClient uses too.
        let known: Set = [
            "CancellingTask", "ManualLifecycle", "ManualNetwork", "PlayedKeys", "StreamTransfer",
        ]
        for small in found where !small.home.hasPrefix("Bellhop") || !known.contains(small.type) {
            Issue.record("Sources/\(small.home):\(small.line) \(small.type) belongs into \(small.user)")
        }
        for type in known.subtracting(found.map(\.type)) { Issue.record("\(type) has moved; remove it from the list") }
    }

    @Test func smallTypes_areFound() {
        let map = SourceMap([
            (
                "A/One.swift",
                SwiftTokens("struct Small { let a = 1 }\nstruct Shared {}\nextension Shared { let b: Own }")
            ),
            ("A/Own.swift", SwiftTokens("enum Own {}\nenum Extended {}\nstruct Used { let own: Own }")),
            ("A/Two.swift", SwiftTokens("let a = Small()\nlet b = Shared()\nextension Extended {}")),
            ("A/Three.swift", SwiftTokens("import A\nfunc c() -> Shared { Shared() } // Small")),
            ("B/Other.swift", SwiftTokens("import A\nlet own: Used")),
        ])
        #expect(
            map.smallTypes(linesMax: 1).map { "\($0.type) of \($0.home):\($0.line): \($0.user)" } == [
                "Small of A/One.swift:1: A/Two.swift"
            ])
    }

    @Test func folders_useLowerFoldersOnly() throws {
        let map = try Self.sourceMap.get()
        #expect(map.arrows.count > 1_000, "the search must find types")
        for source in map.sources.values where Self.place(of: source.room) == nil {
            Issue.record("Sources/\(source.path) is in no folder of Docs/architecture.md")
        }
        let files = try Dictionary(
            uniqueKeysWithValues: Self.files(under: ["Sources"], endingWith: ".swift").map { ($0.path, $0) })
        for arrow in Set(map.arrows).sorted(by: { ($0.from, $0.type) < ($1.from, $1.type) }) {
            guard let from = map.sources[arrow.from].flatMap({ Self.place(of: $0.room) }),
                let to = map.sources[arrow.to].flatMap({ Self.place(of: $0.room) })
            else { continue }
            if from.room == to.room || from.floor > to.floor { continue }
            let place = files["Sources/\(arrow.from)"]?.places(of: arrow.type).first ?? arrow.from
            Issue.record("\(place) uses \(arrow.type) of \(arrow.to), which is not below it")
        }
    }

    /// Files that refer to one another in a cycle must be read together, so cycles stay small.
    @Test func fileCycles_areSmall() throws {
        for circle in try Self.sourceMap.get().circles {
            #expect(circle.count <= 6, "\(circle.count) files name one another: \(circle.joined(separator: ", "))")
        }
    }

    // MARK: Threads

    /// A lock beside its variables guards them only by convention; `Locked` enforces it. BellhopCalls
    /// has its own `Guarded` and thread, because apps build that module without the service's modules.
    @Test func locksAndThreads_areMadeInOneModule() throws {
        let words = ["NSLock", "NSCondition", "NSRecursiveLock", "DispatchSemaphore", "pthread_create", "Thread("]
        let own = ["Guarded.swift", "Streams/StreamTransfer+Linux.swift"].map { "Sources/BellhopCalls/\($0)" }
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
            let own = File(path: file.path, text: file.text.components(separatedBy: "#else").first ?? "")
            let isMonotonic = own.contains("CLOCK_MONOTONIC")
            for word in ["timeIntervalSinceNow", "wait(until:"] + (isMonotonic ? [] : ["pthread_cond_t()"]) {
                for place in own.places(of: word) { Issue.record("\(place) has \(word)") }
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
            SwiftTokens(
                """
                import Foundation // Other
                /* Not this */ struct Box<Item> { enum Inner {} ; let text = "a Word \\(Shown.of("Deep \\(Deeper())")) \\" Quoted" }
                private final class Next: Base.Nested {}
                """))
        #expect(words.imported == ["Foundation"])
        #expect(words.declared == ["Box", "Next"])
        #expect(words.named == ["Box", "Item", "Inner", "Shown", "Deeper", "Next", "Base", "Nested"])
    }
}

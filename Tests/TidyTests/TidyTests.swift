import Foundation
import TestSupport
import Testing

/// The style rules that a test can check.
@Suite(.timed) struct TidyTests {
    struct File: Sendable {
        let path: String
        let text: String
        let lines: [String]
        var name: String { String(path.split(separator: "/").last ?? "") }

        init(path: String, text: String) {
            (self.path, self.text, lines) = (
                path, text, text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            )
        }
    }

    static let root = repository

    /// The files that are or could be committed, by top-level folder. All tests share one reading.
    private static let tree = Result {
        let endings = [".swift", ".py", ".c", ".h", ".md", ".yaml", ".toml", ".html", ".service"]
        return try Dictionary(
            uniqueKeysWithValues: ["Sources", "Tests", "Docs", "Deploy", "Benchmarks"].map { folder in
                let base = root.appendingPathComponent(folder)
                let found = FileManager.default.enumerator(atPath: base.path)?.compactMap { $0 as? String } ?? []
                let kept = found.filter { path in
                    endings.contains { path.hasSuffix($0) } && !path.contains(".build") && !path.contains(".work/")
                }
                return (
                    folder,
                    try kept.sorted().map { path in
                        let text = try String(contentsOf: base.appendingPathComponent(path), encoding: .utf8)
                        return File(path: "\(folder)/\(path)", text: text)
                    }
                )
            })
    }

    /// The tokens of the Swift files, by path.
    private static let codes = Result {
        try Dictionary(
            uniqueKeysWithValues: tree.get().values.joined().filter { $0.path.hasSuffix(".swift") }.map {
                ($0.path, SwiftTokens($0.text))
            })
    }

    static func code(of file: File) throws -> SwiftTokens {
        try codes.get()[file.path] ?? SwiftTokens(file.text)
    }

    /// Returns the files below the folders, sorted by path.
    static func files(under folders: [String], endingWith ending: String) throws -> [File] {
        let tree = try tree.get()
        return folders.flatMap { folder in
            let top = tree[String(folder.prefix { $0 != "/" })] ?? []
            return top.filter { $0.path.hasPrefix(folder + "/") && $0.path.hasSuffix(ending) }
        }
    }

    static func swift() throws -> [File] { try files(under: ["Sources", "Tests"], endingWith: ".swift") }

    // MARK: Modules and layers

    /// Domain and the modules below it are pure: no I/O, no clock, no Foundation.
    @Test func domain_isPure() throws {
        for file in try Self.files(under: ["Sources/Domain", "Sources/Rows", "Sources/Values"], endingWith: ".swift") {
            for place in file.places(of: "import Foundation") { Issue.record("\(place) imports Foundation") }
        }
    }

    /// Features communicate through facts: no feature names a type of another.
    @Test func features_doNotKnowEachOther() throws {
        let files = try Self.files(under: ["Sources/Service/Features"], endingWith: ".swift")
        let features = Set(files.map { String($0.path.split(separator: "/")[3]) })
        #expect(features.count > 10, "the search must find features")
        for feature in features {
            let own = files.filter { $0.path.hasPrefix("Sources/Service/Features/\(feature)/") }
            for other in features where other != feature {
                for file in own {
                    for place in file.places(of: "\(other)Feature") { Issue.record("\(place) names \(other)Feature") }
                }
            }
            #expect(own.contains { $0.name == "\(feature).swift" }, "\(feature) has no \(feature).swift")
        }
    }

    // MARK: Names

    @Test func names_describeTheirSubject() throws {
        let drawers = ["Manager", "Helper", "Util", "Base", "Impl", "Info", "Common"]
        // Standard terms: the encoding of RFC 4648, and the address of a server.
        let terms = ["Base64URL", "baseURL", "BaseURL", "baseAddress"]
        for file in try Self.swift() where !file.path.hasPrefix("Tests/TidyTests/") {
            for (number, line) in file.lines.enumerated() {
                let words = line.split(whereSeparator: { " :<(".contains($0) }).map(String.init)
                guard
                    let place = words.firstIndex(where: {
                        ["class", "struct", "enum", "actor", "protocol"].contains($0)
                    }),
                    place + 1 < words.count, !line.contains("///")
                else { continue }
                let name = words[place + 1]
                for drawer in drawers where name.contains(drawer) {
                    #expect(terms.contains { name.contains($0) }, "\(file.path):\(number + 1) \(name)")
                }
            }
        }
    }

    // MARK: Size

    @Test func lines_andFiles_areShort() throws {
        for file in try Self.swift() {
            #expect(file.lines.count <= 520, "\(file.path) has \(file.lines.count) lines")
            // The formatter wraps code at 120 columns but not comments; tables and string literals cannot be wrapped.
            for (number, line) in file.lines.enumerated() where line.count > 124 && line.contains("//") {
                #expect(line.contains("/// |"), "\(file.path):\(number + 1) has \(line.count) columns")
            }
        }
    }

    /// A longer function does not fit on a screen.
    @Test func functions_haveAtMostSeventyLines() throws {
        var count = 0
        for file in try Self.files(under: ["Sources", "Tests", "Benchmarks", "Deploy"], endingWith: ".swift") {
            let found = SwiftFunctions(try Self.code(of: file))
            count += found.functions.count
            for function in found.functions where function.lineCount > 70 {
                Issue.record("\(file.path):\(function.firstLine) \(function.name) has \(function.lineCount) lines")
            }
            if let line = found.unbalancedLine { Issue.record("\(file.path):\(line) has a bracket without a partner") }
        }
        print("Functions of at most 70 lines: \(count)")
        #expect(count > 7_500, "the search must find functions")
    }

    // MARK: Proofs and promises

    /// Code that turns off the compiler's checks must say why that is correct.
    @Test func uncheckedCode_namesItsProof() throws {
        for file in try Self.files(under: ["Sources"], endingWith: ".swift") {
            for (number, line) in file.lines.enumerated()
            where line.contains("@unchecked Sendable") && !line.contains("//") {
                let above = file.lines[max(0, number - 14)..<number].joined(separator: "\n")
                #expect(above.contains("@unchecked Sendable"), "\(file.path):\(number + 1)")
            }
            for (number, line) in file.lines.enumerated() where line.contains("nonisolated(unsafe)") {
                let above = file.lines[max(0, number - 3)...number].joined(separator: "\n")
                #expect(above.contains("//"), "\(file.path):\(number + 1)")
            }
        }
    }

    @Test func locks_documentWhatTheyGuard() throws {
        for file in try Self.files(under: ["Sources"], endingWith: ".swift") {
            for (number, line) in file.lines.enumerated()
            where ["= NSLock()", "= NSCondition()", "<pthread_mutex_t>"].contains(where: { line.contains($0) }) {
                let near =
                    file.lines[max(0, number - 4)...number].joined() + file.lines[max(0, number - 12)..<number].joined()
                #expect(near.lowercased().contains("guard"), "\(file.path):\(number + 1)")
            }
        }
    }

    @Test func limits_stateWhatBreaksWithoutThem() throws {
        for file in try Self.files(under: ["Sources/Service"], endingWith: "Limits.swift") {
            for (number, line) in file.lines.enumerated() where line.contains("static let ") && number > 0 {
                #expect(file.lines[number - 1].contains("///"), "\(file.path):\(number + 1)")
            }
        }
    }

    @Test func code_hasNoOpenMarkers_andTestsDoNotSleep() throws {
        for file in try Self.swift() where !file.path.hasPrefix("Tests/TidyTests/") {
            let sleeps = file.path.hasPrefix("Tests/") ? [" usleep(", " sleep(", "Thread.sleep"] : []
            for word in ["TODO", "FIXME", "XXX"] + sleeps {
                for place in file.places(of: word) { Issue.record("\(place) says \(word)") }
            }
        }
    }

    // MARK: Documents

    @Test func everyDependency_hasItsReason() throws {
        let package = try String(contentsOf: Self.root.appendingPathComponent("Package.swift"), encoding: .utf8)
        let reasons = try String(contentsOf: Self.root.appendingPathComponent("Docs/dependencies.md"), encoding: .utf8)
        for line in package.components(separatedBy: "\n") where line.contains("url: \"https://") {
            let name = line.split(separator: "\"").first { $0.hasPrefix("https://") }?.split(separator: "/").last ?? ""
            #expect(reasons.contains(name), "Docs/dependencies.md lacks the reason for \(name)")
        }
    }

    @Test func everyFeature_isInTheCatalog() throws {
        let catalog = try String(
            contentsOf: Self.root.appendingPathComponent("Sources/Service/App/Catalog.swift"), encoding: .utf8)
        for file in try Self.files(under: ["Sources/Service/Features"], endingWith: ".swift") {
            let feature = file.path.split(separator: "/")[3]
            guard file.name == "\(feature).swift" else { continue }
            #expect(catalog.contains("\(feature)Feature.feature"), "\(file.path)")
        }
    }
}

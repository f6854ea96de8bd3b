import Foundation
import Testing

/// Rules for the repository as a whole, beyond single lines of code.
extension TidyTests {
    private static func words(of line: String) -> [Substring] {
        line.split { !($0.isLetter || $0.isNumber || $0 == "_") }
    }

    /// Returns the feature folder of a file in module Service, or nil.
    private static func feature(of file: File) -> String? {
        let parts = file.path.split(separator: "/")
        return parts.count >= 5 && parts[2] == "Features" ? String(parts[3]) : nil
    }

    /// A type that two features need belongs to the domain or to a layer below.
    @Test func features_useNoTypesOfEachOther() throws {
        let files = try Self.files(under: ["Sources/Service"], endingWith: ".swift")
        var home: [Substring: String] = [:]
        for file in files {
            guard let feature = Self.feature(of: file) else { continue }
            for line in file.lines where !line.hasPrefix(" ") && !line.hasPrefix("import ") {
                let words = Self.words(of: line)
                guard
                    let keyword = words.firstIndex(where: {
                        ["struct", "enum", "class", "actor", "protocol"].contains($0)
                    }), keyword + 1 < words.count, !line.hasPrefix("//")
                else { continue }
                home[words[keyword + 1]] = feature
            }
        }
        #expect(home.count > 20, "the search must find types")
        for file in files {
            guard let feature = Self.feature(of: file) else { continue }
            for (number, line) in file.lines.enumerated() {
                let code = line.range(of: "//").map { String(line[..<$0.lowerBound]) } ?? line
                for word in Self.words(of: code) {
                    guard let owner = home[word], owner != feature else { continue }
                    Issue.record("\(file.path):\(number + 1) uses \(word) of \(owner)")
                }
            }
        }
    }

    @Test func fileNames_describeTheirContents() throws {
        let drawers = ["Manager", "Helper", "Util", "Base", "Impl", "Info", "Common", "Misc", "Extensions"]
        for file in try Self.swift() {
            // `Database` is the standard term, although it contains `Base`.
            let name = file.path.replacingOccurrences(of: "Database", with: "")
            for drawer in drawers { #expect(!name.contains(drawer), "\(file.path)") }
        }
    }

    @Test func comments_areNoBanners() throws {
        for file in try Self.swift() {
            for (number, line) in file.lines.enumerated() {
                let text = line.trimmingCharacters(in: .whitespaces)
                guard text.hasPrefix("//"), text.count > 6 else { continue }
                let rest = text.drop { $0 == "/" }.trimmingCharacters(in: .whitespaces)
                #expect(rest.isEmpty || !rest.allSatisfy { "=-*#/_~".contains($0) }, "\(file.path):\(number + 1)")
            }
        }
    }

    @Test func bitCasts_stateTheirProof() throws {
        for file in try Self.files(under: ["Sources"], endingWith: ".swift") {
            for (number, line) in file.lines.enumerated() where line.contains("unsafeBitCast(") {
                #expect(
                    file.lines[max(0, number - 4)...number].contains { $0.contains("//") }, "\(file.path):\(number + 1)"
                )
            }
        }
    }

    /// Files must not contain paths of a particular machine.
    @Test func files_containNoLocalPaths() throws {
        let homes = ["/home/", "/Users/", "/root/", "/work/", "/tmp/"]
        let endings = [".swift", ".py", ".c", ".h", ".md", ".yaml", ".toml", ".html", ".service"]
        var files = try endings.flatMap { ending in
            try Self.files(under: ["Sources", "Tests", "Docs", "Deploy", "Benchmarks"], endingWith: ending)
        }
        for name in [
            "README.md", "CHANGELOG.md", "Package.swift", "Makefile", "Dockerfile", "asyncapi.yaml", "openapi.yaml",
            ".ci/test",
        ] {
            let text = try String(contentsOf: Self.root.appendingPathComponent(name), encoding: .utf8)
            files.append(File(path: name, text: text))
        }
        for file in files where !file.path.hasPrefix("Tests/TidyTests/") {
            for home in homes {
                for place in file.places(of: home) { Issue.record("\(place) names \(home)") }
            }
        }
    }

    /// Build and run products are ignored by git.
    @Test func generatedFiles_areIgnored() throws {
        let ignored = try String(contentsOf: Self.root.appendingPathComponent(".gitignore"), encoding: .utf8)
            .components(separatedBy: "\n")
        for made in [".build*", "Package.resolved", "*.sqlite", "*.sqlite-wal", "*.sqlite-shm", ".bellhop/"] {
            #expect(ignored.contains(made), ".gitignore does not name \(made)")
        }
    }
}

import Foundation
import Glibc
import Testing

extension TidyTests.File {
    /// Returns the lines that contain a text, as `path:line`. Most files do not contain it and cost one search.
    func places(of text: String) -> [String] {
        guard contains(text) else { return [] }
        return lines.enumerated().filter { $1.contains(text) }.map { "\(path):\($0.offset + 1)" }
    }

    /// Compares bytes. `String.contains` compares characters, which takes many times as long in a debug build.
    func contains(_ text: String) -> Bool {
        self.text.withCString { all in text.withCString { strstr(all, $0) != nil } }
    }
}

/// Rules for the declaration of tests.
extension TidyTests {
    /// A reader of the outermost types in a file that contain tests. It also records the types whose `@Suite` is
    /// timed.
    struct SuiteReader {
        private(set) var timed: Set<String> = []
        private(set) var withTests: Set<String> = []

        init(_ lines: [String]) {
            var (attributes, type) = ("", "")
            for line in lines {
                let code = line.prefix { $0 != "/" || line.hasPrefix(" ") }
                if !line.hasPrefix(" "), !code.isEmpty {
                    attributes += code + " "
                    let words = attributes.split { " :<{".contains($0) }.map(String.init)
                    let keyword = words.firstIndex { ["struct", "class", "enum", "actor", "extension"].contains($0) }
                    if let keyword, keyword + 1 < words.count {
                        type = words[keyword + 1]
                        if attributes.contains("@Suite("), attributes.contains(".timed") { timed.insert(type) }
                    }
                    if keyword != nil || code.hasPrefix("}") || code.hasPrefix("import ") { attributes = "" }
                }
                if line.contains("@Test"), !line.trimmingCharacters(in: .whitespaces).hasPrefix("//") {
                    withTests.insert(line.hasPrefix("@Test") ? "a function outside of a suite" : type)
                }
            }
        }
    }

    /// This trait reports durations and provides the threads of test bodies.
    @Test func everySuite_isTimed() throws {
        var modules: [Substring: (timed: Set<String>, withTests: [String: String])] = [:]
        for file in try Self.files(under: ["Tests"], endingWith: ".swift") {
            let module = file.path.split(separator: "/")[1]
            let reader = SuiteReader(file.lines)
            modules[module, default: ([], [:])].timed.formUnion(reader.timed)
            for type in reader.withTests {
                modules[module]?.withTests[type] = file.places(of: type).first ?? file.path
            }
        }
        #expect(modules.values.reduce(0) { $0 + $1.timed.count } > 100, "the search must find suites")
        for (_, found) in modules {
            for (type, path) in found.withTests {
                #expect(found.timed.contains(type), "\(path): \(type) has tests and lacks @Suite(.timed)")
            }
        }
    }

    @Test func suiteReader_findsTraitsAndTests() {
        let reader = SuiteReader(
            """
            import Testing
            @Suite(.timed, .serialized)
            final class Timed {
                @Test func a() {}
            }
            @Suite(.timed) struct Short { @Test func b() {} }
            /// @Suite(.timed) in a comment
            struct Plain {
                @Test(arguments: [1]) func c(_: Int) {}
                // @Test in a comment
            }
            extension Timed {
                @Test func d() {}
            }
            """.components(separatedBy: "\n"))
        #expect(reader.timed == ["Timed", "Short"])
        #expect(reader.withTests == ["Timed", "Short", "Plain"])
    }
}

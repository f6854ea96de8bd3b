import Foundation
import Testing

/// The tests that the page of requirements names. Each names its requirement, so a search for an id finds its tests.
extension TidyTests {
    /// The doc comments of the suites and tests in files of tests.
    struct TestComments {
        /// The doc comments of a suite and of its extensions, by the suite's name.
        private(set) var suites: [String: String] = [:]
        /// By the name of a suite, then of a function: the doc comments of the function.
        private(set) var tests: [String: [String: String]] = [:]

        mutating func read(_ lines: [String]) {
            var (suite, comment) = ("", "")
            for line in lines {
                let bytes = line.utf8
                let start = bytes.firstIndex { $0 != 32 } ?? bytes.endIndex
                // A comment belongs to the declaration below it, behind attributes. An empty line ends it.
                if start == bytes.endIndex {
                    comment = ""
                } else if bytes[start...].starts(with: "///".utf8) {
                    comment += bytes[start...].dropFirst(3).reduce(into: "") { $0.unicodeScalars.append(.init($1)) }
                } else if start == bytes.startIndex, let name = Self.name(in: line, after: Self.types) {
                    suite = name
                    suites[suite, default: ""] += comment
                    comment = ""
                } else if let name = Self.name(in: line, after: ["func"]) {
                    tests[suite, default: [:]][name, default: ""] += comment
                    comment = ""
                }
            }
        }

        private static let types: Set<Substring> = ["struct", "class", "extension", "enum", "actor"]

        /// Returns the name of the declaration in a line, or nil if the line declares nothing of these kinds.
        private static func name(in line: String, after keywords: Set<Substring>) -> String? {
            let words = line.split { $0 == " " }
            guard let place = words.firstIndex(where: keywords.contains), place + 1 < words.count else { return nil }
            return String(words[place + 1].prefix { $0.isLetter || $0.isNumber || $0 == "_" })
        }
    }

    /// Returns the requirements that a comment names. A range, `R-1 to R-4`, has the rows between its ends.
    private static func requirements(in comment: String, of page: [String]) -> Set<String> {
        let words = Word.words(of: comment).map(\.text)
        var found = Set(words.filter { $0.hasPrefix("R-") })
        for (place, word) in words.enumerated() where word == "to" && place > 0 && place + 1 < words.count {
            guard let first = page.firstIndex(of: words[place - 1]), let last = page.firstIndex(of: words[place + 1]),
                first <= last
            else { continue }
            found.formUnion(page[first...last])
        }
        return found
    }

    @Test func tests_nameTheRequirementsThatTheyShow() throws {
        let rows = try Self.requirementRows()
        let page = rows.map(\.id)
        var comments = TestComments()
        for file in try Self.files(under: ["Tests"], endingWith: "Tests.swift") { comments.read(file.lines) }
        let suites = comments.suites.mapValues { Self.requirements(in: $0, of: page) }
        let tests = comments.tests.mapValues { $0.mapValues { Self.requirements(in: $0, of: page) } }
        var found = 0
        for row in rows {
            let names = row.tests.components(separatedBy: "`").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
            for name in names where !name.contains("/") && ![".js", ".py", ".json"].contains(where: name.hasSuffix) {
                let parts = name.components(separatedBy: ".")
                guard let suite = suites[parts[0]] else {
                    Issue.record("\(row.place) names \(name), which does not exist")
                    continue
                }
                let own = tests[parts[0]] ?? [:]
                let cited: Set<String>
                if parts.count == 1 {
                    cited = own.values.reduce(suite) { $0.union($1) }
                } else if let test = own[parts[1]] {
                    cited = suite.union(test)
                } else {
                    Issue.record("\(row.place) names \(name), which does not exist")
                    continue
                }
                found += 1
                #expect(cited.contains(row.id), "\(name) shows \(row.id) by \(row.place), and does not name it")
            }
        }
        #expect(found > 300, "names are found at all")
    }

    @Test func commentsOfTests_areReadFromTheirDeclarations() {
        var comments = TestComments()
        comments.read(
            """
            /// R-1 to R-3: the suite.
            @Suite(.timed) struct OrderTests {
                /// A property.
                let count = 1

                /// R-4: a test, whose
                /// comment has two lines.
                @Test(arguments: [
                    (1, 2)
                ])
                func order_isKept(_ pair: (Int, Int)) {}

                @Test func order_isShown() {}
            }

            /// R-7.
            extension OrderTests {
                func helper() {}
            }
            """.components(separatedBy: "\n"))
        let page = ["R-1", "R-2", "R-3", "R-4", "R-7"]
        #expect(Self.requirements(in: comments.suites["OrderTests"] ?? "", of: page) == ["R-1", "R-2", "R-3", "R-7"])
        let tests = comments.tests["OrderTests"]?.mapValues { Self.requirements(in: $0, of: page) }
        #expect(tests == ["order_isKept": ["R-4"], "order_isShown": [], "helper": []])
    }
}

import Foundation
import Testing

/// The citations of requirements and decisions. Each must resolve in the repository.
extension TidyTests {
    /// A word of a text: ASCII letters, digits, hyphens, points and underscores.
    struct Word {
        /// The word without points and hyphens at its ends.
        let text: String
        /// Whether a point ends the sentence here.
        let isLast: Bool
        let line: Int

        var isNumber: Bool { !text.isEmpty && text.utf8.allSatisfy { (48...57).contains($0) } }

        static func words(of text: String) -> [Word] {
            var (words, start, line) = ([Word](), 0, 1)
            // Bytes, because characters take many times as long in a debug build.
            let bytes = Array(text.utf8) + [10]
            for (place, byte) in bytes.enumerated() {
                switch byte {
                case 45, 46, 48...57, 65...90, 95, 97...122: continue
                default:
                    if start < place, let word = Word(bytes[start..<place], line) { words.append(word) }
                    start = place + 1
                }
                if byte == 10 { line += 1 }
            }
            return words
        }

        private init?(_ bytes: ArraySlice<UInt8>, _ line: Int) {
            let inner = bytes.drop { $0 == 45 || $0 == 46 }
            guard let end = inner.lastIndex(where: { $0 != 45 && $0 != 46 }) else { return nil }
            (text, isLast, self.line) = (String(decoding: inner[...end], as: UTF8.self), bytes.last == 46, line)
        }
    }

    /// The citations of one text, with their lines.
    struct CitationReader {
        /// Ids of requirements: `R-SCH-FR-001`, `R-16`.
        private(set) var requirements: [(id: String, line: Int)] = []
        /// Numbers of decisions: `0015`.
        private(set) var decisions: [(number: String, line: Int)] = []
        /// Citations in a form that cannot be resolved: `SCH FR-001`, `FR-001`, `decision 16`, `FORMATS.md`.
        private(set) var unresolvable: [(text: String, line: Int)] = []

        private static let documents: Set<String> = ["SCH", "CNT", "ENG", "VIS", "CUT"]
        private static let absentFiles: Set<String> = ["REQUIREMENTS", "REQUIREMENTS.md", "FORMATS", "FORMATS.md"]
        private static let bareNumbers = ["FR-", "NFR-", "AC-CNT-", "D-CNT-"]

        /// Returns whether a file may have a citation. Most files have no citation, and this check is much faster than
        /// reading their words.
        static func isWorthReading(_ file: File) -> Bool {
            (documents.map { "\($0) " } + absentFiles + bareNumbers + ["R-", "ecision"]).contains { file.contains($0) }
        }

        init(_ text: String) {
            let words = Word.words(of: text)
            for (place, word) in words.enumerated() {
                let next = place + 1 < words.count ? words[place + 1] : nil
                if word.text.hasPrefix("R-") {
                    if Self.isRequirement(word.text) { requirements.append((word.text, word.line)) }
                } else if ["decision", "decisions"].contains(word.text.lowercased()) {
                    readDecisions(words[(place + 1)...], isList: word.text.lowercased() == "decisions")
                } else if Self.documents.contains(word.text), let next, next.text.contains(where: \.isNumber) {
                    unresolvable.append(("\(word.text) \(next.text)", word.line))
                } else if Self.absentFiles.contains(word.text) || Self.isBareNumber(word.text) {
                    unresolvable.append((word.text, word.line))
                }
            }
        }

        /// Whether a word is an id and not the beginning of one, as in `R-SCH-…`.
        private static func isRequirement(_ word: String) -> Bool {
            let parts = word.split(separator: "-").dropFirst()
            guard let first = parts.first else { return false }
            return documents.contains(String(first)) ? parts.count > 1 : parts.last?.last?.isNumber == true
        }

        private static func isBareNumber(_ word: String) -> Bool {
            bareNumbers.contains { word.hasPrefix($0) && word.dropFirst($0.count).first?.isNumber == true }
        }

        /// Reads one number, or the numbers of "0021, 0022 and 0023".
        private mutating func readDecisions(_ words: ArraySlice<Word>, isList: Bool) {
            var isFirst = true
            for word in words {
                if !isFirst, word.text == "and" || word.text == "to" { continue }
                guard word.isNumber else { return }
                if word.text.utf8.count == 4 {
                    decisions.append((word.text, word.line))
                } else {
                    unresolvable.append(("decision \(word.text)", word.line))
                }
                guard isList, !word.isLast else { return }
                isFirst = false
            }
        }
    }

    /// The files whose comments, titles and prose cite requirements and decisions.
    private static func citingFiles() throws -> [File] {
        let endings = [".swift", ".py", ".c", ".h", ".md", ".yaml", ".toml", ".html", ".service"]
        var files = try endings.flatMap { ending in
            try Self.files(under: ["Sources", "Tests", "Docs", "Deploy", "Benchmarks"], endingWith: ending)
        }
        var paths = ["openapi.yaml", "README.md", "CHANGELOG.md"]
        for folder in ["Sources/bellhop.js", "Tests/Fixtures/Client"] {
            let found =
                FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)?
                .compactMap { $0 as? String } ?? []
            paths += found.filter { path in
                [".js", ".ts", ".json"].contains { path.hasSuffix($0) } && !path.contains("node_modules/")
            }.map { "\(folder)/\($0)" }
        }
        files += try paths.map { path in
            File(path: path, text: try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8))
        }
        // The tests of this folder contain the refused forms; the other fixtures are data.
        return files.filter { file in
            !file.path.hasPrefix("Tests/TidyTests/")
                && (!file.path.hasPrefix("Tests/Fixtures/") || file.path.hasPrefix("Tests/Fixtures/Client/"))
        }
    }

    static func requirementRows() throws -> [(id: String, tests: String, place: String)] {
        let page = try String(contentsOf: root.appendingPathComponent("Docs/requirements.md"), encoding: .utf8)
        return page.components(separatedBy: "\n").enumerated().filter { $1.hasPrefix("| R-") }.map { number, line in
            let cells = line.components(separatedBy: " | ")
            return (String(cells[0].dropFirst(2)), cells.last ?? "", "Docs/requirements.md:\(number + 1)")
        }
    }

    @Test func requirements_haveOneRowEach() throws {
        var seen: Set<String> = []
        for row in try Self.requirementRows() {
            #expect(seen.insert(row.id).inserted, "\(row.place) has \(row.id) twice")
        }
        #expect(seen.count > 200, "rows are found at all")
    }

    /// Rows of requirements name tests. A renamed test must be renamed there, too.
    @Test func requirements_nameTestsThatExist() throws {
        let swift = try Self.files(under: ["Tests"], endingWith: ".swift")
        let text = File(path: "Tests", text: swift.map(\.text).joined(separator: "\n"))
        let files = try Set((Self.citingFiles() + Self.files(under: ["Tests"], endingWith: ".py")).map(\.name))
        for row in try Self.requirementRows() {
            let names = row.tests.components(separatedBy: "`").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
            #expect(!names.isEmpty || row.tests.contains("no test"), "\(row.place) \(row.id) names no test")
            for name in names where name != "Benchmarks/run" {
                if [".js", ".py", ".json"].contains(where: { name.hasSuffix($0) }) {
                    #expect(files.contains(name), "\(row.place) names the file \(name), which does not exist")
                    continue
                }
                let parts = name.split(separator: ".")
                #expect(
                    ["struct", "class", "extension"].contains { text.contains("\($0) \(parts[0])") },
                    "\(row.place) names \(name), which does not exist")
                if parts.count == 2 { #expect(text.contains("func \(parts[1])("), "\(row.place) names \(name)") }
            }
        }
    }

    /// The defences of the threat model name tests. `…` ends a shortened name.
    @Test func threatModel_namesTestsThatExist() throws {
        let path = "Docs/threat-model.md"
        let page = File(
            path: path, text: try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8))
        let tests = try Self.files(under: ["Tests"], endingWith: ".swift").map(\.text).joined(separator: "\n")
        let text = File(path: "Tests", text: tests)
        let quoted = page.text.components(separatedBy: "`").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
        let names = quoted.filter { name in
            // Settings of PostgreSQL and error codes have no upper-case letter.
            name.first?.isLowercase == true && name.contains("_") && name.contains(where: \.isUppercase)
                && name.allSatisfy { $0.isLetter || "_…".contains($0) }
        }
        #expect(names.count > 50, "names are found at all")
        for name in names {
            guard !text.contains("func \(name.hasSuffix("…") ? "\(name.dropLast())" : "\(name)(")") else { continue }
            Issue.record("\(page.places(of: name).first ?? path) names \(name), which does not exist")
        }
    }

    @Test func citations_resolveInTheRepository() throws {
        let rows = Set(try Self.requirementRows().map(\.id))
        let decisions = Set(
            try Self.files(under: ["Docs/decisions"], endingWith: ".md").map { String($0.name.prefix(4)) })
        var found = 0
        for file in try Self.citingFiles() where CitationReader.isWorthReading(file) {
            let reader = CitationReader(file.text)
            found += reader.requirements.count
            for (id, line) in reader.requirements where !rows.contains(id) {
                Issue.record("\(file.path):\(line) cites \(id), which Docs/requirements.md does not have")
            }
            for (number, line) in reader.decisions where !decisions.contains(number) {
                Issue.record("\(file.path):\(line) cites decision \(number), which Docs/decisions does not have")
            }
            for (text, line) in reader.unresolvable {
                Issue.record(
                    "\(file.path):\(line) cites \"\(text)\". Cite an id of Docs/requirements.md or `decision 0015`.")
            }
        }
        #expect(found > 1000, "citations are found at all")
    }

    @Test func citationReader_findsEveryForm() {
        let reader = CitationReader(
            """
            /// Sent again (R-VIS-NFR-2.3, R-CUT-N-1 to R-CUT-N-4; R-16). Prefixes such as `R-SCH-…` and R-… are no ids.
            /// R-VIS-APPENDIX, see decisions 0021, 0022 and 0023. 17 rows; a decision
            /// 0015. 12 others. A decision of 3, an SCH-like word, CUT short, and `r-1`.
            // SCH FR-001, CNT §13.1, NFR-2.3, decision 16, Decisions 9, 10 and 13; R-RECON-4, REQUIREMENTS.md
            """)
        #expect(
            reader.requirements.map(\.id) == [
                "R-VIS-NFR-2.3", "R-CUT-N-1", "R-CUT-N-4", "R-16", "R-VIS-APPENDIX", "R-RECON-4",
            ])
        #expect(reader.decisions.map(\.number) == ["0021", "0022", "0023", "0015"])
        #expect(reader.decisions.map(\.line) == [2, 2, 2, 3])
        #expect(
            reader.unresolvable.map(\.text) == [
                "SCH FR-001", "FR-001", "CNT 13.1", "NFR-2.3", "decision 16", "decision 9", "decision 10",
                "decision 13",
                "REQUIREMENTS.md",
            ])
    }
}

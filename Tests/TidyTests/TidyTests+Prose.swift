import Foundation
import Testing

/// The language of comments, texts and papers. Turns of phrase that readers have to translate stay rare in each kind.
extension TidyTests {
    /// Counts the words of a text, and finds foreign turns of phrase in it.
    struct ProseReader {
        private(set) var wordCount = 0
        /// Each phrase, with the place of its line.
        private(set) var phrases: [String] = []

        /// The number of phrases in 10,000 words.
        var rate: Double { Double(phrases.count) * 10_000 / Double(max(1, wordCount)) }

        private static let single: Set<String> = [
            "whoever", "whomever", "nobody", "somebody", "anybody", "anew", "who", "whom", "none", "tell", "tells",
            "told", "hear", "hears", "heard",
        ]
        private static let pairs: Set<String> = [
            "of which", "by which", "what is", "what was", "what has", "what it", "what they", "what come",
            "what comes", "what stand", "what stands", "what others", "what nobody", "what there", "those that",
            "those who", "those whom", "those of",
        ]
        private static let triples: Set<String> = ["it is looked", "as far as"]

        /// Reads one line. A phrase that continues on the next line is not found.
        mutating func read(_ line: some Collection<UInt8>, at place: @autoclosure () -> String) {
            let words = Self.words(of: line)
            wordCount += words.count
            for (index, word) in words.enumerated() {
                let next = index + 1 < words.count ? word + " " + words[index + 1] : word
                let third = index + 2 < words.count ? next + " " + words[index + 2] : next
                guard
                    let found = [word].first(where: Self.single.contains) ?? [next].first(where: Self.pairs.contains)
                        ?? [third].first(where: Self.triples.contains)
                else { continue }
                phrases.append("\(place()): \(found)")
            }
        }

        /// Returns the words of a line in lower case. Other characters than letters, hyphens and apostrophes end a word.
        private static func words(of line: some Collection<UInt8>) -> [String] {
            var (words, word) = ([String](), [UInt8]())
            // Bytes, because characters take many times as long in a debug build.
            for byte in line {
                switch byte {
                case 65...90, 97...122: word.append(byte | 0x20)
                // Underscores join the names of columns.
                case 39, 45,
                    95 where !word.isEmpty:
                    word.append(byte)
                default:
                    if !word.isEmpty { words.append(String(decoding: word, as: UTF8.self)) }
                    word.removeAll(keepingCapacity: true)
                }
            }
            if !word.isEmpty { words.append(String(decoding: word, as: UTF8.self)) }
            return words
        }
    }

    /// The prose of one line of a file, in several forms.
    enum Prose {
        /// Returns the comment at the end of a line; nil without one.
        static func comment(in line: String, mark: String) -> Substring.UTF8View? {
            guard let found = line.range(of: mark) else { return nil }
            // `https://` begins no comment.
            guard found.lowerBound == line.startIndex || line[line.index(before: found.lowerBound)] != ":" else {
                return nil
            }
            return line[found.upperBound...].utf8
        }

        /// Returns the string literals of a line that have at least three words, without interpolations. SQL is not prose.
        static func texts(in line: String) -> [[UInt8]] {
            let bytes = Array(line.utf8)
            var (texts, text, depth, index) = ([[UInt8]](), [UInt8]?.none, 0, 0)
            while index < bytes.count, text != nil || !bytes[index...].starts(with: "//".utf8) {
                let byte = bytes[index]
                let next = index + 1 < bytes.count ? bytes[index + 1] : byte
                switch byte {
                case UInt8(ascii: "(") where depth > 0: depth += 1
                case UInt8(ascii: ")") where depth > 0: depth -= 1
                case _ where depth > 0: break
                case UInt8(ascii: "\\"):
                    if next == UInt8(ascii: "("), text != nil { depth = 1 }
                    text?.append(UInt8(ascii: "."))
                    index += 1
                case UInt8(ascii: "\""):
                    if let text { texts.append(text) }
                    text = text == nil ? [] : nil
                default: text?.append(byte)
                }
                index += 1
            }
            return texts.filter { text in
                let words = text.split(separator: UInt8(ascii: " "))
                return words.count >= 3 && !words.contains { sql.contains(String(decoding: $0, as: UTF8.self)) }
            }
        }

        private static let sql: Set<String> = ["SELECT", "INSERT", "UPDATE", "WHERE", "VALUES"]

        /// Returns the lines of a Markdown text outside of code.
        static func lines(ofMarkdown text: [String]) -> [(number: Int, text: String)] {
            var isCode = false
            return text.enumerated().compactMap { number, line in
                if line.drop(while: { $0 == " " }).hasPrefix("```") {
                    isCode.toggle()
                    return nil
                }
                guard !isCode else { return nil }
                let parts = line.split(separator: "`", omittingEmptySubsequences: false)
                return (
                    number, parts.enumerated().filter { $0.offset % 2 == 0 }.map(\.element).joined(separator: " x ")
                )
            }
        }

        /// Returns the lines of summaries, descriptions and titles in a YAML text.
        static func lines(ofDescriptionsIn text: [String]) -> [(number: Int, text: String)] {
            var depth = Int?.none
            return text.enumerated().compactMap { number, line in
                let indent = line.prefix { $0 == " " }.count
                if let key = ["summary:", "description:", "title:"].first(where: line.contains) {
                    depth = indent
                    return (number, String(line[line.range(of: key)!.upperBound...]))
                }
                if let begun = depth, indent <= begun, !line.isEmpty { depth = nil }
                return depth == nil ? nil : (number, line)
            }
        }
    }

    private static func count(_ files: [File], _ read: (File, inout ProseReader) -> Void) -> ProseReader {
        var reader = ProseReader()
        for file in files { read(file, &reader) }
        return reader
    }

    private static func comments(of files: [File], mark: String) -> ProseReader {
        count(files) { file, reader in
            for (number, line) in file.lines.enumerated() {
                guard let comment = Prose.comment(in: line, mark: mark) else { continue }
                reader.read(comment, at: "\(file.path):\(number + 1)")
            }
        }
    }

    private static func papers(_ files: [File]) -> ProseReader {
        count(files) { file, reader in
            for line in Prose.lines(ofMarkdown: file.lines) {
                reader.read(line.text.utf8, at: "\(file.path):\(line.number + 1)")
            }
        }
    }

    private static func file(_ path: String) throws -> File {
        File(path: path, text: try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8))
    }

    private static func expectPlain(_ reader: ProseReader, _ kind: String, rateMax: Double) {
        #expect(reader.wordCount > 1_000, "\(kind): no prose was found")
        #expect(
            reader.rate <= rateMax, "\(kind): \(reader.rate) in 10,000 words\n\(reader.phrases.joined(separator: "\n"))"
        )
    }

    // MARK: The kinds of prose

    @Test func comments_areInPlainEnglish() throws {
        let own = ["Tests/TidyTests/"]
        let swift = try Self.swift().filter { file in !own.contains { file.path.hasPrefix($0) } }
        Self.expectPlain(Self.comments(of: swift, mark: "//"), "Comments of Swift", rateMax: 15)
        let scripts = try Self.files(under: ["Tests", "Benchmarks", "Deploy"], endingWith: ".py")
        Self.expectPlain(Self.comments(of: scripts, mark: "# "), "Comments of scripts", rateMax: 15)
    }

    @Test func texts_areInPlainEnglish() throws {
        let reader = Self.count(try Self.files(under: ["Sources"], endingWith: ".swift")) { file, reader in
            for (number, line) in file.lines.enumerated() {
                for text in Prose.texts(in: line) { reader.read(text, at: "\(file.path):\(number + 1)") }
            }
        }
        Self.expectPlain(reader, "Errors, help texts and log lines", rateMax: 10)
    }

    @Test func papers_areInPlainEnglish() throws {
        let files = try Self.files(under: ["Docs"], endingWith: ".md") + ["README.md", "CHANGELOG.md"].map(Self.file)
        Self.expectPlain(Self.papers(files), "README, Docs and CHANGELOG", rateMax: 10)
    }

    @Test func apiReference_isInPlainEnglish() throws {
        let reader = Self.count([try Self.file("openapi.yaml")]) { file, reader in
            for line in Prose.lines(ofDescriptionsIn: file.lines) {
                reader.read(line.text.utf8, at: "openapi.yaml:\(line.number + 1)")
            }
        }
        Self.expectPlain(reader, "The API reference", rateMax: 10)
    }

    @Test func proseReader_findsPhrases() {
        var reader = ProseReader()
        reader.read("Whoever is told of it, as far as is known; those that wait.".utf8, at: "a")
        reader.read("A reader's own-made words of 3 kinds.".utf8, at: "b")
        #expect(reader.phrases == ["a: whoever", "a: told", "a: as far as", "a: those that"])
        #expect(reader.wordCount == 19)
        #expect(
            Prose.texts(in: #""\(what(is)) is: all of \(it)""#).map { String(decoding: $0, as: UTF8.self) } == [
                ". is: all of ."
            ])
        #expect(
            Prose.texts(in: #"log("a \"short\" text", "two words", "SELECT 1 WHERE x") // "a comment of words""#).map {
                String(decoding: $0, as: UTF8.self)
            } == ["a .short. text"])
        #expect(Prose.comment(in: "let a = 1  // why", mark: "//").map { String($0) } == " why")
        #expect(Prose.comment(in: "see https://example.org", mark: "//") == nil)
        #expect(Prose.lines(ofMarkdown: ["a `b` c", "```", "d", "```", "e"]).map(\.text) == ["a  x  c", "e"])
        let yaml = ["get:", "  summary: List", "  description: |", "    All of", "", "    them.", "  tags: [a]"]
        #expect(Prose.lines(ofDescriptionsIn: yaml).map(\.number) == [1, 2, 3, 4, 5])
    }
}

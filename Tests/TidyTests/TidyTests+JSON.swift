import Testing

/// JSON is written by `JSONWriter` alone. Members that are spliced byte by byte get a comma too many as soon as one of the
/// parts has no members.
extension TidyTests {
    /// A form of JSON that is written by hand. Lines without `sign` are not searched.
    private struct Splice: Sendable {
        let sign: String
        let pattern: @Sendable (Substring) -> Bool
    }

    private static let splices = [
        // A bracket or a separator as a byte, if it is added to others.
        Splice(sign: "UInt8(ascii: \"") {
            $0.contains(/(?:append|insert)\((?:contentsOf: )?\[?UInt8\(ascii: "[{}\[\],:]"\)/)
                || $0.contains(/\+=? *\[?UInt8\(ascii: "[{}\[\],:]"\)/)
        },
        // The same bytes as numbers.
        Splice(sign: "append(0x") { $0.contains(/append\(0x(?:7B|7D|5B|5D|2C|3A)\)/.ignoresCase()) },
        // A text of brackets and separators.
        Splice(sign: ".utf8") { $0.contains(/(?:Array\(|append\(contentsOf: |\+=? *)#*"[{}\[\],:"\\]+"#*\.utf8/) },
        // A name of a member beside a value.
        Splice(sign: "\":") { $0.contains(/\\":.*\\\(|\\\(.*\\":|":.*\\#\(|\\#\(.*":/) },
        // A part of what a writer has written.
        Splice(sign: "JSONWriter") {
            $0.contains(/JSONWriter\.[a-z]+\(.*\)\.(?:dropFirst|dropLast|prefix|suffix|removeLast|removeFirst)/)
        },
        Splice(sign: "riter.bytes") { $0.contains(/riter\.bytes\.(?:dropFirst|dropLast|prefix|suffix)/) },
    ]

    private static func isSplice(_ line: String) -> Bool {
        let code = line.drop { $0 == " " }
        guard !code.hasPrefix("//") else { return false }
        return splices.contains { line.contains($0.sign) && $0.pattern(code) }
    }

    @Test func json_isWrittenByItsWriter() throws {
        for file in try Self.files(under: ["Sources"], endingWith: ".swift") where !file.name.hasPrefix("JSONWriter") {
            guard Self.splices.contains(where: { file.contains($0.sign) }) else { continue }
            for (number, line) in file.lines.enumerated() where Self.isSplice(line) {
                Issue.record("\(file.path):\(number + 1) writes JSON by hand; use JSONWriter")
            }
        }
    }

    @Test(arguments: [
        #"whole.append(UInt8(ascii: "{"))"#, #"if own.count > 2 { whole.append(UInt8(ascii: ",")) }"#,
        #"return body.dropLast() + [UInt8(ascii: ",")] + writer.bytes.dropFirst()"#, "bytes.append(0x7b)",
        #"bytes += "},".utf8"#, ##"bytes.append(contentsOf: #"],""#.utf8)"##, #"data: Array("{}".utf8)"#,
        #"let text = "{\"id\":\"\(id)\"}""#, ##"let text = #"{"id":\#(number)}"#"##,
        "Array(JSONWriter.object(body).dropFirst().dropLast())", "return content + writer.bytes.dropFirst()",
    ])
    func splicedJSON_isFound(line: String) { #expect(Self.isSplice(line)) }

    @Test(arguments: [
        #"// whole.append(UInt8(ascii: "{"))"#, #"if bytes.first == UInt8(ascii: "{") {"#,
        #"hash.update("a:\(b)".utf8)"#, #"bytes.append(UInt8(ascii: "\""))"#, "let rest = JSONWriter.object(body)",
        #"text.append(contentsOf: ";t=".utf8)"#,
    ])
    func otherCode_isNoSplice(line: String) { #expect(!Self.isSplice(line)) }
}

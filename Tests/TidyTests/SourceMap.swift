/// A map of the types that each file in Sources uses. It reads the text, without the compiler, and ignores nested
/// types.
struct SourceMap {
    struct Source {
        let path: String
        /// The top-level types that the file declares.
        let declared: Set<String>
        /// The capitalized words in its code.
        let named: Set<String>
        let imported: Set<String>
        let declarations: [SourceWords.Declaration]

        var module: Substring { path.prefix { $0 != "/" } }
        /// The folder of the file.
        var room: Substring { path[..<(path.lastIndex(of: "/") ?? path.endIndex)] }
    }

    /// A reference: `from` names a type that `to` declares.
    struct Arrow: Hashable {
        let from: String
        let to: String
        let type: String
    }

    let sources: [String: Source]
    let arrows: [Arrow]

    /// - Parameter files: the files, with their paths below Sources.
    init(_ files: [(path: String, code: SwiftTokens)]) {
        let read = files.map { Source(path: $0.path, words: SourceWords($0.code)) }
        sources = Dictionary(uniqueKeysWithValues: read.map { ($0.path, $0) })
        var homes: [String: [Source]] = [:]
        for source in read { for type in source.declared { homes[type, default: []].append(source) } }
        arrows = read.flatMap { source in
            source.named.subtracting(source.declared).flatMap { type -> [Arrow] in
                let all = homes[type] ?? []
                let own = all.filter { $0.module == source.module }
                let seen = own.isEmpty ? all.filter { source.imported.contains(String($0.module)) } : own
                return seen.map { Arrow(from: source.path, to: $0.path, type: type) }
            }
        }
    }

    /// The groups of files that refer to one another in cycles, largest first (Tarjan's strongly connected
    /// components).
    var circles: [[String]] {
        let targets = Dictionary(grouping: arrows, by: \.from).mapValues { Set($0.map(\.to)) }
        var (index, low): ([String: Int], [String: Int]) = ([:], [:])
        var (stack, waiting): ([String], Set<String>) = ([], [])
        var found: [[String]] = []
        func visit(_ file: String) {
            let number = index.count
            (index[file], low[file]) = (number, number)
            stack.append(file)
            waiting.insert(file)
            for next in targets[file] ?? [] {
                if index[next] == nil {
                    visit(next)
                    low[file] = min(low[file] ?? number, low[next] ?? number)
                } else if waiting.contains(next) {
                    low[file] = min(low[file] ?? number, index[next] ?? number)
                }
            }
            guard low[file] == number, let start = stack.lastIndex(of: file) else { return }
            let circle = stack[start...].sorted()
            stack.removeSubrange(start...)
            waiting.subtract(circle)
            if circle.count > 1 { found.append(circle) }
        }
        for file in sources.keys.sorted() where index[file] == nil { visit(file) }
        return found.sorted { $0.count > $1.count }
    }
}

extension SourceMap.Source {
    init(path: String, words: SourceWords) {
        self.init(
            path: path, declared: words.declared, named: words.named, imported: words.imported,
            declarations: words.declarations)
    }
}

extension SourceMap {
    /// Returns the types of at most `linesMax` lines that one other file of the module uses, and no other file. Such a
    /// type belongs beside its user. A type with extensions in other files stays where it is.
    func smallTypes(linesMax: Int) -> [(type: String, home: String, line: Int, user: String)] {
        let users = Dictionary(grouping: arrows, by: { $0.to + ":" + $0.type }).mapValues { Set($0.map(\.from)) }
        return sources.values.flatMap { source in
            source.declared.compactMap { type in
                let own = source.declarations.filter { $0.owner == type }
                let others = source.declarations.filter { $0.owner != type }
                guard let user = users[source.path + ":" + type], user.count == 1, let user = user.first,
                    sources[user]?.module == source.module, own.reduce(0, { $0 + $1.lineCount }) <= linesMax,
                    !others.contains(where: { $0.named.contains(type) }),
                    sources[user]?.declarations.contains(where: { $0.owner == type }) == false
                else { return nil }
                return (type, source.path, own.first?.firstLine ?? 1, user)
            }
        }.sorted { ($0.home, $0.line) < ($1.home, $1.line) }
    }
}

/// The words in the code of one file, without comments and string literals but with interpolations.
struct SourceWords {
    /// A declaration at the top level.
    struct Declaration {
        /// The type that it declares or extends; empty for functions and variables.
        var owner = ""
        var firstLine = 0
        var lastLine = 0
        var named: Set<String> = []

        var lineCount: Int { lastLine - firstLine + 1 }
    }

    private(set) var declared: Set<String> = []
    private(set) var imported: Set<String> = []
    private(set) var declarations: [Declaration] = []
    /// The capitalized words.
    var named: Set<String> { declarations.reduce(into: []) { $0.formUnion($1.named) } }

    private static let declaring: Set<String> = ["struct", "class", "enum", "actor", "protocol", "typealias"]

    init(_ code: SwiftTokens) {
        var (depth, importLine, current) = (0, 0, Declaration())
        for (place, token) in code.tokens.enumerated() {
            switch token.byte {
            case UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: "A")...UInt8(ascii: "Z") where token.line != importLine:
                let word = code.string(token)
                if depth == 0, place > 0, token.start > code.tokens[place - 1].end {
                    let before = code.string(code.tokens[place - 1])
                    if Self.declaring.contains(before) || before == "extension" {
                        current = Self.end(current, &declarations)
                        (current.owner, current.firstLine, current.lastLine) = (word, token.line, token.line)
                        if before != "extension" { declared.insert(word) }
                    }
                }
                current.named.insert(word)
            case UInt8(ascii: "a")...UInt8(ascii: "z") where depth == 0:
                if token.line == importLine { break }
                if code.isWord(token, "import") {
                    importLine = token.line
                } else if code.isWord(token, "func") || code.isWord(token, "let") || code.isWord(token, "var") {
                    current = Self.end(current, &declarations)
                }
            default: break
            }
            if token.line == importLine, !code.isWord(token, "import") { imported.insert(code.string(token)) }
            // The modifiers of the next declaration are outside of the braces.
            if depth > 0 || token.byte == UInt8(ascii: "}") { current.lastLine = token.line }
        }
        _ = Self.end(current, &declarations)
    }

    private static func end(_ declaration: Declaration, _ all: inout [Declaration]) -> Declaration {
        all.append(declaration)
        return Declaration()
    }
}

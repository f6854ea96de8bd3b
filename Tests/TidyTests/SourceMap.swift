import Foundation

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
    init(_ files: [(path: String, text: String)]) {
        let read = files.map { Source(path: $0.path, words: SourceWords($0.text)) }
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
        self.init(path: path, declared: words.declared, named: words.named, imported: words.imported)
    }
}

/// The words in the code of one file, without comments and string literals but with interpolations.
struct SourceWords {
    private(set) var declared: Set<String> = []
    private(set) var named: Set<String> = []
    private(set) var imported: Set<String> = []

    private static let declaring: Set<String> = ["struct", "class", "enum", "actor", "protocol", "typealias"]

    init(_ text: String) {
        let code = SwiftCode.code(of: Array(text.utf8))
        var (depth, previous, isMember, isImport) = (0, "", false, false)
        var index = 0
        while index < code.count {
            let byte = code[index]
            if Self.isWord(byte) {
                let start = index
                while index < code.count, Self.isWord(code[index]) { index += 1 }
                let word = String(decoding: code[start..<index], as: UTF8.self)
                if isImport {
                    imported.insert(word)
                } else if word.utf8.first.map({ (65...90).contains($0) }) == true {
                    named.insert(word)
                    if depth == 0, !isMember, Self.declaring.contains(previous) { declared.insert(word) }
                }
                isImport = isImport || word == "import"
                (previous, isMember) = (word, false)
                continue
            }
            switch byte {
            case UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: "\n"): isImport = false
            case UInt8(ascii: "."): isMember = true
            default: break
            }
            if byte > 0x20, byte != UInt8(ascii: ".") { (previous, isMember) = ("", false) }
            index += 1
        }
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        (65...90).contains(byte) || (97...122).contains(byte) || (48...57).contains(byte) || byte == UInt8(ascii: "_")
    }
}

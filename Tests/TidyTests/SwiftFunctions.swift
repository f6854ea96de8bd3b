/// The functions of one Swift file: everything with a body of its own, by the kind of its declaration. Closures count if
/// they are assigned to a variable or a property.
struct SwiftFunctions {
    struct Function: Equatable {
        /// `func`, `init`, `deinit`, `subscript`, `var` for a computed property without accessors, the name of an
        /// accessor, or `=` for a closure.
        let kind: String
        let name: String
        /// The line of the keyword. Attributes and modifiers may stand before it.
        let firstLine: Int
        private(set) var lastLine = 0

        var lineCount: Int { lastLine - firstLine + 1 }

        fileprivate mutating func end(at line: Int) { lastLine = line }
    }

    private(set) var functions: [Function] = []
    /// The line of a bracket without its partner; nil if all brackets have one.
    private(set) var unbalancedLine: Int?

    /// A declaration whose body has not begun.
    private struct Declaration {
        let kind: String
        let name: String
        let line: Int
        let depth: Int
        var hasType = false
        var hasValue = false
    }

    /// An open bracket: the index of the function whose body it opens, or whether it encloses accessors.
    private struct Bracket {
        let closing: UInt8
        let line: Int
        var function: Int?
        var hasAccessors = false
    }

    private let code: SwiftTokens
    private var brackets: [Bracket] = []
    private var pending: Declaration?

    init(_ code: SwiftTokens) {
        self.code = code
        for place in code.tokens.indices { read(place) }
        if let open = brackets.last { unbalancedLine = unbalancedLine ?? open.line }
    }

    private func byte(_ place: Int) -> UInt8 { code.tokens.indices.contains(place) ? code.tokens[place].byte : 0 }

    private func word(_ place: Int) -> String {
        code.tokens.indices.contains(place) ? code.string(code.tokens[place]) : ""
    }

    private mutating func read(_ place: Int) {
        let token = code.tokens[place]
        if let declaration = pending, declaration.kind == "var", declaration.depth == brackets.count,
            endsVariable(place)
        {
            pending = nil
        }
        switch token.byte {
        case UInt8(ascii: "("): brackets.append(Bracket(closing: UInt8(ascii: ")"), line: token.line))
        case UInt8(ascii: "["): brackets.append(Bracket(closing: UInt8(ascii: "]"), line: token.line))
        case UInt8(ascii: "{"): open(place)
        case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "}"): close(token)
        case UInt8(ascii: ":"):
            if pending?.depth == brackets.count, pending?.hasValue == false { pending?.hasType = true }
        case UInt8(ascii: "="): if pending?.depth == brackets.count { pending?.hasValue = true }
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"): readWord(place)
        default: break
        }
    }

    /// Whether a token begins another statement than the variable before it.
    private func endsVariable(_ place: Int) -> Bool {
        let (token, before) = (code.tokens[place], code.tokens[max(0, place - 1)])
        guard token.line > before.line else { return false }
        let continues = "=:,.&-+*/<".utf8.contains(before.byte) || "{.-+*/?&|<=:)]".utf8.contains(token.byte)
        return !continues
    }

    // MARK: Declarations

    private static let others = [
        "let", "struct", "class", "enum", "actor", "extension", "protocol", "typealias", "import", "associatedtype",
        "case", "macro", "operator",
    ]
    private static let accessors: Set<String> = ["get", "set", "willSet", "didSet", "init", "_read", "_modify"]

    private mutating func readWord(_ place: Int) {
        let token = code.tokens[place]
        let (before, after) = (byte(place - 1), byte(place + 1))
        guard before != UInt8(ascii: "."), after != UInt8(ascii: ":"), word(place - 1) != "func" else { return }
        if brackets.last?.hasAccessors == true {
            if Self.accessors.contains(code.string(token)) { declare(word(place), name: word(place), token) }
            return
        }
        if code.isWord(token, "func") {
            declare("func", name: word(place + 1), token)
        } else if code.isWord(token, "init") {
            if "(<?!".utf8.contains(after) { declare("init", name: "init", token) }
        } else if code.isWord(token, "deinit") {
            if after == UInt8(ascii: "{") { declare("deinit", name: "deinit", token) }
        } else if code.isWord(token, "subscript") {
            if "(<".utf8.contains(after) { declare("subscript", name: "subscript", token) }
        } else if code.isWord(token, "var") {
            if !isBoundByStatement(place) { declare("var", name: word(place + 1), token) }
        } else if pending?.depth == brackets.count,
            Self.others.contains(where: { $0.utf8.first == token.byte && $0 == code.string(token) })
        {
            pending = nil
        }
    }

    /// Whether `var` stands in a condition or a pattern, such as `if var` or `case .some(var`.
    private func isBoundByStatement(_ place: Int) -> Bool {
        if ",(".utf8.contains(byte(place - 1)) { return true }
        return ["if", "guard", "while", "for", "case"].contains(word(place - 1))
    }

    private mutating func declare(_ kind: String, name: String, _ token: SwiftTokens.Token) {
        pending = Declaration(kind: kind, name: name, line: token.line, depth: brackets.count)
    }

    // MARK: Bodies

    private mutating func open(_ place: Int) {
        let token = code.tokens[place]
        var bracket = Bracket(closing: UInt8(ascii: "}"), line: token.line)
        defer { brackets.append(bracket) }
        if let declaration = pending, declaration.depth == brackets.count {
            let takesAccessors = ["var", "subscript"].contains(declaration.kind)
            if takesAccessors, isAccessor(place + 1) {
                bracket.hasAccessors = true
                pending = nil
                return
            }
            if declaration.kind != "var" || (declaration.hasType && !declaration.hasValue) {
                let line = takesAccessors ? token.line : declaration.line
                bracket.function = begin(Function(kind: declaration.kind, name: declaration.name, firstLine: line))
                pending = nil
                return
            }
        }
        if byte(place - 1) == UInt8(ascii: "="), !isOperator(place - 1) {
            bracket.function = begin(Function(kind: "=", name: word(place - 2), firstLine: token.line))
        }
    }

    /// Whether the equals sign is part of an operator such as `==`.
    private func isOperator(_ place: Int) -> Bool {
        let token = code.tokens[place]
        return token.start > 0 && "=!<>+-*/%&|^~".utf8.contains(code.text[token.start - 1])
    }

    /// Whether the first word of a block, after attributes and modifiers, is an accessor.
    private func isAccessor(_ start: Int) -> Bool {
        var place = start
        while true {
            switch word(place) {
            case "@": place += 2
            case "nonmutating", "mutating", "borrowing", "consuming", "nonisolated": place += 1
            case let word where Self.accessors.contains(word):
                return ["{", "(", "}", "get", "set", "async", "throws", "mutating", "nonmutating"].contains(
                    self.word(place + 1))
            default: return false
            }
        }
    }

    private mutating func begin(_ function: Function) -> Int {
        functions.append(function)
        return functions.count - 1
    }

    private mutating func close(_ token: SwiftTokens.Token) {
        guard let bracket = brackets.popLast(), bracket.closing == token.byte else {
            unbalancedLine = unbalancedLine ?? token.line
            return
        }
        if let function = bracket.function { functions[function].end(at: token.line) }
        if let declaration = pending, declaration.depth > brackets.count { pending = nil }
    }
}

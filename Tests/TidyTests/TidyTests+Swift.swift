import Testing

/// Tests of the reader of Swift code that the rules use.
extension TidyTests {
    private static func words(_ code: String) -> String {
        let tokens = SwiftTokens(code)
        return tokens.tokens.map(tokens.string).joined(separator: " ")
    }

    /// Returns the functions as `kind name firstLine-lastLine`.
    private static func functions(_ code: String) -> [String] {
        let found = SwiftFunctions(SwiftTokens(code))
        #expect(found.unbalancedLine == nil, "\(code)")
        return found.functions.map { "\($0.kind) \($0.name) \($0.firstLine)-\($0.lastLine)" }
    }

    @Test(arguments: [
        ("a // } b\nc /* { /* } */ { */ d", "a c d"),
        (#"f("{ \" }", "\\")"#, #"f ( " , " )"#),
        (#"f("{ \(a["x"]) \(g("}", { h }())) }") + b"#, #"f ( " a [ " ] g ( " , { h } ( ) ) ) + b"#),
        (##"f(#"\(a) " \"#, #"\#(b)"#)"##, ##"f ( " , " b )"##),
        ("f(\"\"\"\n  { \"\" \\(a)\n  \"\"\"\n)", "f ( \" a )"),
        ("f(#\"\"\"\n  \"\"\" { \\#(a)\n  \"\"\"#)", "f ( \" a )"),
        ("f(/\\/{[}\"]/, a / b, c)", "f ( , a / b , c )"),
        ("`func` = 1", "`func` = 1"),
    ])
    func tokens_leaveOutCommentsAndText(code: String, expected: String) {
        #expect(Self.words(code) == expected)
        #expect(SwiftFunctions(SwiftTokens(code)).unbalancedLine == nil)
    }

    @Test(arguments: [
        ("func a() {\n}", ["func a 1-2"]),
        (
            "@discardableResult\npublic static func a<T>(\n    b: T = { 1 }(),\n) async throws(E) -> [T]\nwhere T: P {\n}",
            ["= T 3-3", "func a 2-6"]
        ),
        ("static func == (a: A, b: A) -> Bool { a.b == b.b }", ["func = 1-1"]),
        ("func a() {\n    func b() {\n    }\n}", ["func a 1-4", "func b 2-3"]),
        ("func actor(in a: A) -> B {\n}", ["func actor 1-2"]),
        (
            "init?(\n    a: A\n) {\n}\ninit<T>(_: T) { self.init(a: 1) }\ndeinit { x = .init(1) }",
            ["init init 1-4", "init init 5-5", "deinit deinit 6-6"]
        ),
        (
            "protocol A {\n    func a()\n    init()\n    var b: Int { get set }\n    subscript(i: Int) -> Int { get }\n}\nstruct B {\n}",
            []
        ),
        ("subscript(i: Int) -> Int {\n    i\n}", ["subscript subscript 1-3"]),
        ("subscript(i: Int) -> Int {\n    get {\n    }\n    set(new) {\n    }\n}", ["get get 2-3", "set set 4-5"]),
        ("var a: Int {\n    1\n}\nvar b = 1 {\n    didSet {\n    }\n}", ["var a 1-3", "didSet didSet 5-6"]),
        (
            "var a: Int {\n    get async throws {\n    }\n    nonmutating set {\n    }\n}",
            ["get get 2-3", "set set 4-5"]
        ),
        ("var a: Int { _read { yield b } _modify { yield &b } }", ["_read _read 1-1", "_modify _modify 1-1"]),
        ("let a: (Int) -> Void = { b in\n}\nself.c = {\n}\nlazy var d = {\n}()", ["= Void 1-2", "= c 3-4", "= d 5-6"]),
        ("if var a = b { }\nif let a, var b { }\nvar c: Int\nd { }\nvar e = f { }\nfor var g in h { }", []),
        ("func a(b: Int = c({ 1 })) -> (Int) -> Void {\n    { _ in }\n}", ["func a 1-3"]),
        ("a(func: { }, init: { })\nb.subscript { }", []),
    ])
    func functions_ofEveryKind_areFound(code: String, expected: [String]) {
        #expect(Self.functions(code) == expected)
    }

    @Test(arguments: [("func a() {", 1), ("a(\n}", 2), ("a)", 1), ("{\n[\n]", 1)])
    func bracketWithoutPartner_isReported(code: String, line: Int) {
        #expect(SwiftFunctions(SwiftTokens(code)).unbalancedLine == line)
    }
}

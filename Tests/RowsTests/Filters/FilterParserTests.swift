import TestSupport
import Testing
import Values

@testable import Rows

/// R-ENG-E-3, R-ENG-E-5: the filters of PostgREST, and the conditions that a row must meet.
@Suite(.timed) struct FilterParserTests {
    static func mistake(_ text: String) -> FilterMistake? {
        do {
            _ = try Filter(parsing: text)
            return nil
        } catch {
            return error
        }
    }

    /// R-ENG-E-3: the documented syntax, with tolerated spaces; R-ENG-E-5: several conditions.
    @Test(arguments: [
        ("", ""), ("   ", ""), ("id=eq.5", "id=eq.5"), ("id=gt.0,id=lt.100", "id=gt.0,id=lt.100"),
        ("id=in.(1,2,3),details=eq.active", "id=in.(1,2,3),details=eq.active"),
        (" id = in.( a , b ) , x = not.like.hel% ", "id=in.(a,b),x=not.like.hel%"),
        ("id=in. (a)", "id=in.(a)"), ("id=in.()", "id=in.()"), ("id=not.in.( ),a=eq.1", "id=not.in.(),a=eq.1"),
        ("id=in.(a,b,a)", "id=in.(a,b)"),
        ("name=eq.\"a,b\",id=gt.0", "name=eq.\"a,b\",id=gt.0"),
        ("name=eq.\"she said \\\"hi\\\"\"", "name=eq.\"she said \\\"hi\\\"\""),
        ("name=eq.\"plain\"", "name=eq.plain"), ("name=eq.\"\"", "name=eq.\"\""), ("name=eq.", "name=eq.\"\""),
        ("name=eq.\" a \"", "name=eq.\" a \""), ("name=eq.  a  ", "name=eq.a"),
        ("tags=in.(\"a,b\",c, \"d)\" )", "tags=in.(\"a,b\",c,\"d)\")"), ("tags=in.(\"\")", "tags=in.(\"\")"),
        ("path=eq.C:\\new", "path=eq.\"C:\\\\new\""), ("path=eq.\"C:\\new\"", "path=eq.C:new"),
        ("desc=eq.5\" tall,id=gt.0", "desc=eq.\"5\\\" tall\",id=gt.0"),
        ("a=eq.x),b=eq.y),c=eq.z", "a=eq.\"x)\",b=eq.\"y)\",c=eq.z"),
        ("a=eq.f(x,y),b=eq.1", "a=eq.\"f(x,y)\",b=eq.1"), ("a=eq.b=c.d", "a=eq.b=c.d"),
        ("flag=is.true,d=not.is.NULL", "flag=is.true,d=not.is.null"), ("a=isdistinct.5", "a=isdistinct.5"),
        ("a=not.in.(1,2)", "a=not.in.(1,2)"), ("a=ilike.%x_", "a=ilike.%x_"), ("or=eq.1", "or=eq.1"),
        ("größe=eq.µ", "größe=eq.µ"),
    ])
    func filter_isRead_andHasOneSpelling(_ text: String, _ canonical: String) throws {
        let filter = try Filter(parsing: text)
        #expect(filter.canonical == canonical)
        #expect(try Filter(parsing: filter.canonical) == filter)
    }

    /// Errors name the position of the mistake.
    @Test(arguments: [
        ("id=gt.0,", 8, "comma too many"), (",id=gt.0", 0, "comma too many"), ("a=eq.1,,b=eq.2", 7, "comma too many"),
        ("undefined", 0, "column=operator.value"), ("=eq.1", 0, "name is missing"), ("id", 0, "column=operator.value"),
        ("a=eq.1,id", 7, "column=operator.value"), ("id=foo.5", 3, "unknown operator 'foo'"),
        ("id=not.foo.5", 7, "unknown operator 'foo'"), ("id=not.not.eq.5", 7, "occurs twice"),
        ("id=eq", 3, "must be followed by"), ("id=", 3, "the operator is missing"),
        ("id=5", 3, "the operator is missing"),
        ("id=EQ.5", 3, "the operator is missing"), ("id=in.1,2", 6, "in parentheses"), ("id=in.", 6, "in parentheses"),
        ("id=in.(1,2", 6, "not closed"), ("id=in.(", 6, "not closed"),
        ("id=in.(1,)", 9, "a value of 'in' is missing"), ("id=in.(1,,2)", 9, "a value of 'in' is missing"),
        ("id=in.(1)x", 9, "only a comma"), ("id=in.(\"a\"b)", 10, "only a comma or ')'"),
        ("id=in.(a\"b)", 8, "must be quoted"), ("id=in.(f(x))", 8, "must be quoted"),
        ("id=in.(a\\b)", 8, "must be quoted"),
        ("a=eq.\"b", 5, "quotation mark is missing"), ("a=eq.\"b\\", 5, "quotation mark is missing"),
        ("a=eq.\"b\"c", 8, "only a comma"),
        ("a=eq.f(x,b=eq.1", 6, "not closed"), ("a=is.maybe", 5, "null, true, false or unknown"),
        ("a=match.^(a+)+$", 2, "no bound"), ("a=not.imatch.x", 6, "no bound"),
        ("a=like.x\\", 7, "backslash"), ("or=(a.eq.1,b.eq.2)", 0, "two subscriptions"),
        ("a\u{1}b=eq.1", 1, "control"), ("a=eq.\u{0}", 5, "NUL"),
    ])
    func badFilter_isRefused_withThePlace(_ text: String, _ position: Int, _ reason: String) throws {
        let mistake = try #require(Self.mistake(text))
        #expect(mistake.position == position, "\(mistake.detail)")
        #expect(mistake.detail.contains(reason), "\(mistake.detail)")
    }

    /// R-ENG-E-2: the limit itself, and one above.
    @Test func in_takesAThousandValues_andNotOneMore() throws {
        func filter(_ count: Int) -> String {
            "id=in.(\((0..<count).map { "9b2f3c1e-4c1a-4d2b-8e3f-\(100_000_000_000 + $0)" }.joined(separator: ",")))"
        }
        let full = try Filter(parsing: filter(FilterLimits.valuesMax))
        #expect(full.valueCount == 1000)
        #expect(full.matches(["id": .string("9b2f3c1e-4c1a-4d2b-8e3f-100000000999")]))
        #expect(!full.matches(["id": .string("9b2f3c1e-4c1a-4d2b-8e3f-100000001000")]))
        let mistake = try #require(Self.mistake(filter(FilterLimits.valuesMax + 1)))
        #expect(mistake.reason == "'in' takes at most 1000 values")
        #expect(mistake.position == 7 + 1000 * 37)
    }

    @Test func unboundedDeclarations_areRefused_withTheReason() throws {
        let run = String(repeating: "a", count: FilterLimits.patternRunMax)
        _ = try Filter(parsing: "a=like.%\(run)%")
        #expect(try #require(Self.mistake("a=like.%\(run)b%")).reason.contains("between two '%'"))
        // At an anchored end, a run costs only its own length, so it may be longer.
        _ = try Filter(parsing: "a=like.\(run)\(run)%\(run)\(run)")
        let many = (0...FilterLimits.conditionsMax).map { "c\($0)=eq.1" }
        _ = try Filter(parsing: many.dropLast().joined(separator: ","))
        #expect(try #require(Self.mistake(many.joined(separator: ","))).reason.contains("at most 20 conditions"))
        let value = String(repeating: "v", count: FilterLimits.valueBytesMax)
        _ = try Filter(parsing: "a=eq.\(value)")
        #expect(try #require(Self.mistake("a=eq.\(value)v")).reason.contains("at most 1024 bytes"))
        #expect(try #require(Self.mistake("a=in.(\"\(value)v\")")).reason.contains("at most 1024 bytes"))
        let column = String(repeating: "c", count: FilterLimits.columnBytesMax)
        _ = try Filter(parsing: "\(column)=eq.1")
        #expect(try #require(Self.mistake("\(column)c=eq.1")).reason.contains("at most 128 bytes"))
        let long = String(repeating: " ", count: FilterLimits.filterBytesMax)
        #expect(try #require(Self.mistake(long + " ")).reason.contains("at most 65536 bytes"))
    }

    /// Random filters read back equal from their canonical text.
    @Test func randomFilter_readsBackEqual_fromItsCanonicalText() throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        for round in 0..<effort(quick: 4_000, full: 20_000, long: 200_000) {
            let text = RandomFilters.text(&random)
            let filter = try Filter(parsing: text)
            let canonical = filter.canonical
            let again = try Filter(parsing: canonical)
            #expect(again == filter, "seed \(seed), round \(round): \(text)")
            #expect(again.canonical == canonical, "seed \(seed), round \(round): \(text)")
        }
    }

    /// Random bytes of the grammar, and valid filters with changed bytes: the parser never crashes and repeats its
    /// answer.
    @Test func fuzzedFilter_isReadOrRefused_andNeverCrashes() throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        let pieces = [
            "=", ".", ",", "(", ")", "\"", "\\", "not.", "in.(", "eq.", "like.", "is.", "%", "_", " ", "null", "5",
            "-1e9", "é", "\u{0}", "\u{7F}", "🙂", "a", "isdistinct.", "match.", "\t",
        ]
        var accepted = 0
        let rounds = effort(quick: 6_000, full: 30_000, long: 300_000)
        for round in 0..<rounds {
            var text: String
            if round.isMultiple(of: 2) {
                text = (0..<Int.random(in: 0...24, using: &random)).map { _ in
                    pieces[Int.random(in: 0..<pieces.count, using: &random)]
                }.joined()
            } else {
                var bytes = Array(RandomFilters.text(&random).utf8)
                for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
                    let place = Int.random(in: 0..<bytes.count, using: &random)
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: bytes[place] = UInt8.random(in: .min ... .max, using: &random)
                    case 1: bytes.remove(at: place)
                    default: bytes.insert(UInt8.random(in: 0x20...0x7E, using: &random), at: place)
                    }
                }
                text = String(decoding: bytes, as: UTF8.self)
            }
            do {
                let filter = try Filter(parsing: text)
                accepted += 1
                #expect(try Filter(parsing: filter.canonical) == filter, "seed \(seed), round \(round): \(text)")
                _ = filter.matches(RandomFilters.row(&random))
            } catch {
                #expect(error.position >= 0, "seed \(seed): \(text)")
                #expect(error.position <= text.utf8.count, "seed \(seed): \(text)")
                #expect(Self.mistake(text) == error, "seed \(seed), round \(round): \(text)")
            }
        }
        #expect(accepted > rounds / 30, "seed \(seed): too few fuzzed filters got past the parser")
    }

    /// Deep and wide inputs at the size limit: the parser does not recurse, so it cannot exhaust the stack.
    @Test func extremeInputs_areAnswered() {
        for piece in ["(", ")", "\"", "\\", ",", "=", "a=eq.(", "a=in.(", "not.", "a=eq.\"", "%"] {
            let text = String(repeating: piece, count: FilterLimits.filterBytesMax / piece.utf8.count)
            #expect(Self.mistake(text) != nil, "\(piece)")
            #expect(Self.mistake("a=eq.\(text.prefix(1000)),") != nil)
        }
    }
}

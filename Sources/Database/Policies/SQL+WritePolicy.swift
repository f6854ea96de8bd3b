import Values

extension SQL {
    /// A statement in the form in which it is prepared: with its write policy woven in.
    struct Woven {
        var text: String
        var binds: [SQLValue]
        /// Whether the last column of each returned row contains the result of the check that the written row is within
        /// the scope.
        var hasCheck = false
        /// The number of columns before the check that name the users of each written row.
        var users = 0
        let tables: TablesReference?
        /// The tenant, or the user of a tenant, in whose rows the statement stays.
        let fence: Fence?
        /// Whether the statement inserts a row outside its fence. It must not run.
        var isOutside = false

        init(text: String, of sql: SQL) {
            self.init(text: text, of: sql, in: sql.fence)
        }

        init(text: String, of sql: SQL, in fence: Fence?) {
            (self.text, binds, tables, self.fence) = (text, sql.binds, sql.tables, fence)
        }

        /// The table that is written under a scope.
        var written: Table? {
            guard let target = tables?.value.target, case .of = target.rows else { return nil }
            return target.table
        }
        /// The number of last columns that the author of the statement did not ask for.
        var hiddenColumns: Int { users + (hasCheck ? 1 : 0) }
    }

    /// Returns the statement in that form. It must not need a check, because several statements run together.
    func wovenWithoutCheck() throws -> Woven {
        let woven = woven()
        precondition(!woven.hasCheck, "a statement with a check must run alone")
        try woven.requireInside()
        return woven
    }

    /// Returns the statement with its write policy woven in. It means the same as `USING` and `WITH CHECK` of row-level
    /// security.
    ///
    /// - `UPDATE`, `DELETE`, and the update of `ON CONFLICT … DO UPDATE` touch only rows within the policy: `WHERE x`
    ///   becomes `WHERE (policy) AND (x)`.
    /// - `INSERT` and `UPDATE` leave only rows within the policy: `RETURNING` gets a last column with the result of the
    ///   check, and the connection refuses rows outside.
    ///
    /// - Parameter showingUsers: Whether a writing statement also returns the users of each row that it writes.
    func woven(showingUsers: Bool = false) -> Woven {
        guard let target else { return Woven(text: text, of: self) }
        guard case .of(let scope) = target.rows else { return wovenInFence(target) }
        let clauses = WriteClauses.find(in: text, target)
        let predicate = target.table.writePredicate(for: scope, qualifier: clauses.alias)
        var woven = Woven(text: text, of: self)
        woven.hasCheck = target.verb != .delete
        if clauses.filtersExistingRows {
            woven.text = clauses.text(text, narrowedBy: predicate.text)
            let bindsBefore = clauses.conditionStart.binds
            woven.binds = binds[..<bindsBefore] + predicate.binds + binds[bindsBefore...]
        }
        // Without the name of the table: SQLite knows no alias in RETURNING of DELETE.
        var returned = showingUsers ? target.table.userColumns : []
        woven.users = returned.count
        if woven.hasCheck {
            returned.append("(\(predicate.text))")
            woven.binds += predicate.binds
        }
        if !returned.isEmpty {
            woven.text += (clauses.hasReturning ? ", " : " RETURNING ") + returned.joined(separator: ", ")
        }
        return woven
    }
}

/// The positions of the clauses of a writing statement, found by reading the words outside quotes and parentheses.
struct WriteClauses: Sendable {
    struct Place: Sendable {
        let offset: Int
        /// The number of binds before the position.
        let binds: Int
    }

    private(set) var alias: String?
    /// After the word `WHERE` that selects the existing rows.
    private(set) var whereEnd: Place?
    /// Where that condition ends, or would be inserted.
    private(set) var conditionEnd: Place
    private(set) var hasReturning = false
    private(set) var filtersExistingRows: Bool
    /// The columns that the statement sets in existing rows.
    private(set) var setColumns: [String] = []

    /// Where a further condition on the existing rows begins.
    var conditionStart: Place { whereEnd ?? conditionEnd }

    /// Returns the statement's text with a further condition on the existing rows: `WHERE x` becomes
    /// `WHERE (condition) AND (x)`.
    func text(_ text: String, narrowedBy condition: String) -> String {
        let bytes = Array(text.utf8)
        var narrowed = ""
        narrowed.reserveCapacity(bytes.count + condition.utf8.count * 2 + 32)
        narrowed += String(decoding: bytes[..<conditionStart.offset], as: UTF8.self)
        if whereEnd == nil {
            narrowed += " WHERE \(condition) "
        } else {
            narrowed += " (\(condition)) AND ("
            narrowed += String(decoding: bytes[conditionStart.offset..<conditionEnd.offset], as: UTF8.self)
            narrowed += ") "
        }
        return narrowed + String(decoding: bytes[conditionEnd.offset...], as: UTF8.self)
    }

    private static let known = KnownTexts<WriteClauses>()

    /// Returns the clauses of a statement. Only the text decides them, including the place of the written table.
    static func find(in text: String, _ target: WriteTarget) -> WriteClauses {
        known.find(text) { WriteClauses(scanning: text, target: target) }
    }

    private init(scanning text: String, target: WriteTarget) {
        filtersExistingRows = target.verb != .insert
        conditionEnd = Place(offset: 0, binds: 0)
        var words = SQLWords(text, from: target.textOffset, binds: target.bindOffset)
        var previous = ""
        var isFirst = true
        var isConditionOpen = true
        while let word = words.next() {
            let begin = Place(offset: words.wordStart, binds: words.bindCount)
            if previous == "AS", alias == nil, isFirst {
                alias = words.original
                isFirst = false
            } else if word != "AS" {
                isFirst = false
            }
            switch word {
            case "UPDATE" where previous == "DO":
                precondition(!filtersExistingRows, "a scoped statement may have only one DO UPDATE: \(text)")
                filtersExistingRows = true
            case "WHERE" where filtersExistingRows && isConditionOpen:
                precondition(whereEnd == nil, "a scoped statement must not have a second WHERE: \(text)")
                whereEnd = Place(offset: words.wordEnd, binds: words.bindCount)
            case "RETURNING":
                hasReturning = true
                if isConditionOpen { conditionEnd = begin }
                isConditionOpen = false
            case "ORDER", "LIMIT":
                // This belongs to the SELECT of an INSERT, where no condition on existing rows is open yet.
                if filtersExistingRows, isConditionOpen {
                    conditionEnd = begin
                    isConditionOpen = false
                }
            default:
                // A word before `=` and ahead of WHERE is a column after SET.
                if filtersExistingRows, isConditionOpen, whereEnd == nil, words.isBeforeEquals {
                    setColumns.append(words.original)
                }
            }
            previous = word
        }
        if isConditionOpen { conditionEnd = Place(offset: words.end, binds: words.bindCount) }
    }
}

/// The words of an SQL text at the outermost level: outside quotes, comments and parentheses.
struct SQLWords {
    private let bytes: [UInt8]
    private var index: Int
    private var depth = 0
    private(set) var bindCount: Int
    private(set) var wordStart = 0
    private(set) var wordEnd = 0

    init(_ text: String, from offset: Int, binds: Int) {
        bytes = Array(text.utf8)
        index = offset
        bindCount = binds
    }

    var end: Int { bytes.count }
    var original: String { String(decoding: bytes[wordStart..<wordEnd], as: UTF8.self) }

    /// Whether `=` follows the word.
    var isBeforeEquals: Bool {
        bytes[wordEnd...].first { $0 > UInt8(ascii: " ") } == UInt8(ascii: "=")
    }

    /// Returns the next word in upper case.
    mutating func next() -> String? {
        while index < bytes.count {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): skipQuoted(by: byte)
            case UInt8(ascii: "("):
                depth += 1
                index += 1
            case UInt8(ascii: ")"):
                depth -= 1
                index += 1
            case UInt8(ascii: "?"):
                bindCount += 1
                index += 1
            case UInt8(ascii: "-") where index + 1 < bytes.count && bytes[index + 1] == byte:
                preconditionFailure("a scoped statement must not contain a comment, which could hide the policy")
            case UInt8(ascii: "/") where index + 1 < bytes.count && bytes[index + 1] == UInt8(ascii: "*"):
                preconditionFailure("a scoped statement must not contain a comment, which could hide the policy")
            default:
                guard Self.isWordByte(byte) else {
                    index += 1
                    continue
                }
                wordStart = index
                while index < bytes.count, Self.isWordByte(bytes[index]) { index += 1 }
                wordEnd = index
                if depth == 0 { return original.uppercased() }
            }
        }
        return nil
    }

    private mutating func skipQuoted(by quote: UInt8) {
        index += 1
        // A doubled quote inside ends one quotation and begins the next, with the same effect.
        while index < bytes.count, bytes[index] != quote { index += 1 }
        index += 1
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        byte.isAlphanumeric || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".") || byte >= 0x80
    }
}

import Values

/// A connection to PostgreSQL, inside only one transaction can run at a time.
///
/// Commands that begin a transaction, set its scope or acquire a lock are not sent on their own. They travel with the
/// statement that needs them, so that a read costs one round trip.
final class PostgresConnection: DatabaseDriver {
    enum Access {
        /// One statement, which is its own transaction.
        case single
        /// Several statements that see one snapshot.
        case reading
        case writing
    }

    let link: PostgresLink
    private let vocabulary: ScopeVocabulary
    /// The settings of every transaction, independent of the caller. A pooler shares its connections with other
    /// clients, so the session settings are repeated for each transaction there.
    private let baseSettings: [String: String]
    /// Nil between transactions.
    private var access: Access?
    /// Commands to send before the next statement.
    private var prefix: [PostgresLink.Command] = []
    /// The transaction-local settings of the server, once the prefix is sent.
    private var settings: [String: String] = [:]
    private var wanted: [String: String] = [:]
    /// The settings and locks at each open savepoint, restored when it is rolled back.
    private var marks: [(settings: [String: String], locked: Set<String>)] = []
    private var locked: Set<String> = []
    /// Whether the server knows of the transaction.
    private var isBegun = false
    /// Whether the transaction notifies, which its COMMIT must do even if it has no statements.
    private var isNotifying = false
    /// The transaction's id once it is known, if it has changed anything.
    private(set) var transactionID: String?
    /// Whether only the server knows the outcome.
    private(set) var hasSentCommit = false
    /// Whether to wait for a lock that is held elsewhere. Otherwise the lock fails the job, which is retried.
    var waitsForLocks = true
    /// The number of round trips in this transaction.
    private(set) var exchanges = 0
    /// Whether the next statement also asks for the transaction's id, because the last step has begun.
    var isNaming = false

    private static let begin = PostgresLink.Command(text: "BEGIN ISOLATION LEVEL READ COMMITTED")
    private static let beginReading = PostgresLink.Command(text: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    private static let name = "SELECT pg_current_xact_id()::text"

    init(_ address: String, options: StoreOptions, vocabulary: ScopeVocabulary) throws(DatabaseError) {
        link = try PostgresLink(address, options: options)
        self.vocabulary = vocabulary
        var settings = [ScopeVocabulary.service: "on"]
        if options.isPooled, options.access != .owner {
            for (name, value) in PostgresLink.sessionSettings(options) { settings[name] = value }
        }
        baseSettings = settings
    }

    static let engine = DatabaseEngine.postgreSQL
    static let planPrefix = "EXPLAIN "

    var isUsable: Bool { !link.isBroken }

    // MARK: Statements

    func perform(_ woven: SQL.Woven, _ body: (Row) throws -> Bool) throws -> Int {
        try Self.forEach(of: ask([woven]), [woven]) { try body($1) }[0]
    }

    func perform(_ statements: [SQL], _ body: (_ place: Int, Row) throws -> Bool) throws -> [Int] {
        let woven = try statements.map { try $0.wovenWithoutCheck() }
        return try Self.forEach(of: ask(woven), woven, body)
    }

    /// Passes the rows of results to a body, and returns the number of rows that each statement has changed.
    private static func forEach(
        of results: [PostgresResult], _ statements: [SQL.Woven], _ body: (_ place: Int, Row) throws -> Bool
    ) throws -> [Int] {
        try zip(results, statements).enumerated().map { place, pair in
            let (result, woven) = pair
            if result.rowCount > 0 {
                try result.forEach(text: woven.text, hiddenColumns: woven.hiddenColumns) { try body(place, $0) }
            }
            return result.changedRows
        }
    }

    func performWithCommit(_ statements: [SQL]) throws {
        for statement in statements { append(try statement.wovenWithoutCheck()) }
    }

    func performMigration(_ statement: String) throws {
        _ = try perform(SQL(unchecked: statement).woven()) { _ in true }
    }

    private func append(_ statement: SQL.Woven) {
        if let command = settingsCommand(for: statement) { prefix.append(command) }
        prefix.append(.init(text: PlacedTexts.text(of: statement.text), values: statement.binds))
    }

    /// Sends the pending commands and the statements, and returns the statements' results.
    private func ask(_ statements: [SQL.Woven]) throws -> [PostgresResult] {
        guard !statements.isEmpty else { return [] }
        guard let access else { preconditionFailure("a statement must run in a transaction") }
        if isNaming, transactionID == nil { prefix.append(.init(text: Self.name)) }
        let namePlace = prefix.count - 1
        var places: [Int] = []
        for statement in statements {
            append(statement)
            places.append(prefix.count - 1)
        }
        let commands = takePrefix()
        exchanges += 1
        if access == .single {
            precondition(exchanges == 1, "a read declared as a single statement must not run a second one")
            // The settings end with the implicit transaction.
            defer { settings = [:] }
            let results = try link.exchange(commands)
            return places.map { results[$0] }
        }
        let wasBegun = isBegun
        isBegun = true
        do {
            let results = try link.exchange(commands)
            if isNaming, transactionID == nil { transactionID = results[namePlace].firstText }
            return places.map { results[$0] }
        } catch {
            // The savepoints after the failed command were not created. They stay pending, so that they can be undone
            // without a command.
            if let completed = link.completed {
                // The failed command was left over from an earlier job, which is already done and could not be undone
                // alone.
                let isEarlier = commands.dropFirst(completed + 1).contains { $0.text.hasPrefix("RELEASE ") }
                if isEarlier { link.abandon() }
                prefix = commands.dropFirst(completed + 1).filter { $0.text.hasPrefix("SAVEPOINT ") }
            } else {
                prefix = Array(commands.prefix(places[0]))
                isBegun = wasBegun
            }
            throw error
        }
    }

    // MARK: Settings

    func enter(_ scope: Scope?) throws {
        wanted = baseSettings
        guard let scope else { return }
        wanted.merge(scope.predicates.settings { vocabulary.settings(of: scope) }) { $1 }
    }

    /// Returns one command for the settings that the statement needs and the server does not have yet, or nil.
    private func settingsCommand(for statement: SQL.Woven) -> PostgresLink.Command? {
        let opening = vocabulary.opening(for: statement)
        let fence = statement.fence
        var target: [String: String]
        if !statement.unscoped.isEmpty || fence != nil, statement.scoped.isEmpty, statement.written == nil {
            // The statement reads nothing that a scope decides, such as only the service's own records. So the current
            // scope may stay, whichever it is. But its keys must not open more than the rows of one user.
            target = fence?.user == nil ? settings : [:]
            for (name, value) in baseSettings { target[name] = value }
            if opening != nil || fence != nil { target[ScopeVocabulary.unscoped] = opening }
        } else {
            target = wanted
            if let fence, let tenant = wanted[ScopeVocabulary.tenant] {
                precondition(tenant.hasBytes(of: fence.tenant.text), "a statement must stay in one tenant")
            }
            target[ScopeVocabulary.unscoped] = opening
            if let written = statement.written, vocabulary.needsWriting(written) {
                target[ScopeVocabulary.writing] = written.name
            }
        }
        if let fence { vocabulary.enter(fence, in: &target) }
        defer { settings = target }
        return vocabulary.command(from: settings, to: target)
    }

    // MARK: Origin

    func origin(in db: DatabaseConnection) throws -> String? {
        // Some providers revoke this right.
        let mayAsk = try db.exists("SELECT 1 WHERE has_function_privilege('pg_control_system()', 'EXECUTE')")
        guard mayAsk else { return nil }
        // A server has an identifier, a database has an OID, and each promotion has a timeline, with which the names of
        // the log's files begin.
        return try db.row(
            """
            SELECT concat_ws('/', system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()),
                left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))
            FROM pg_control_system()
            """
        ) { try $0.text(0) }
    }

    // MARK: Locks

    /// Asks for the transaction's id with the next command. It is needed if the answer to COMMIT gets lost.
    ///
    /// The last steps wait for their locks. Only last steps of other groups hold such locks, and no such step waits for
    /// a lock of this group.
    func prepareGroupSteps() throws {
        try enter(nil)
        isNaming = true
        waitsForLocks = true
    }

    func lock(_ subjects: () -> [String]) throws {
        precondition(access == .writing, "only a writing transaction can lock subjects")
        let missing = Set(subjects()).subtracting(locked)
        guard !missing.isEmpty else { return }
        locked.formUnion(missing)
        // Sorted, so that two transactions that want the same locks never deadlock. A lock that is held elsewhere and
        // not waited for is an error, so that the commands behind it are not executed.
        prefix.append(
            .init(
                text: "SELECT bellhop_hold($1::text[], $2::boolean)",
                values: [.text(ScopeVocabulary.array(missing.sorted())), .text(waitsForLocks ? "t" : "f")]))
    }

    func notify(_ channel: StaticString, _ payload: String) throws {
        isNotifying = true
        prefix.append(.init(text: "SELECT pg_notify($1, $2)", values: [.text("\(channel)"), .text(payload)]))
    }

    // MARK: The transaction

    var isInTransaction: Bool { access != nil && !link.isBroken }

    func begin(_ access: Access) {
        precondition(self.access == nil, "only one transaction can run at a time")
        // If this fails, the connection is lost, and the first statement reports it.
        try? link.forgetIfFull()
        self.access = access
        prefix = []
        settings = [:]
        marks = []
        locked = []
        (isBegun, isNotifying) = (false, false)
        transactionID = nil
        exchanges = 0
        isNaming = false
        hasSentCommit = false
        switch access {
        case .single: break
        case .reading: prefix = [Self.beginReading]
        case .writing: prefix = [Self.begin]
        }
        wanted = baseSettings
    }

    func control(_ control: TransactionControl) throws {
        switch control {
        case .begin, .beginImmediate: preconditionFailure("a transaction must be started with its access mode")
        case .savepoint:
            marks.append((settings, locked))
            prefix.append(.init(text: "SAVEPOINT s\(marks.count)"))
        case .release:
            // Nothing happened in between, so neither command needs to be sent.
            if prefix.last?.text == "SAVEPOINT s\(marks.count)" {
                prefix.removeLast()
            } else {
                prefix.append(.init(text: "RELEASE SAVEPOINT s\(marks.count)"))
            }
            marks.removeLast()
        case .rollbackTo:
            guard let mark = marks.last else { return }
            (settings, locked) = mark
            // Commands that the server has not received are undone by not sending them.
            if let unsent = prefix.lastIndex(where: { $0.text == "SAVEPOINT s\(marks.count)" }) {
                prefix.removeSubrange((unsent + 1)...)
            } else {
                prefix = [.init(text: "ROLLBACK TO SAVEPOINT s\(marks.count)")]
            }
        case .commit: try commitAndWait()
        case .rollback: end(with: "ROLLBACK")
        }
    }

    /// Writes a mark that exists if, and only if, the transaction is stored. It travels with the COMMIT, whose answer
    /// may get lost.
    func writeMark(_ mark: String, of writer: String) throws {
        guard isBegun else { return }
        if transactionID == nil {
            let command = PostgresLink.Command(text: "SELECT pg_current_xact_id_if_assigned()::text")
            transactionID = try link.exchange(takePrefix() + [command]).last?.firstText
        }
        guard transactionID != nil else { return }
        prefix.append(.init(text: PostgresSchema.writeMark, values: [.text(writer), .text(mark)]))
    }

    private func takePrefix() -> [PostgresLink.Command] {
        defer { prefix = [] }
        return prefix
    }

    private func commitAndWait() throws {
        defer { access = nil }
        // A transaction that was never sent has nothing to commit.
        guard isBegun || isNotifying else { return }
        isBegun = true
        hasSentCommit = true
        let results = try link.exchange(takePrefix() + [.init(text: "COMMIT")])
        guard results.last?.tag == "COMMIT" else {
            throw DatabaseError(.contended, "the server rolled the transaction back at commit")
        }
    }

    /// Ends a reading transaction, or a failed one, without waiting for the answer.
    func end(with command: String = "COMMIT") {
        defer { access = nil }
        prefix = []
        guard isBegun, !link.isBroken else { return }
        try? link.post([.init(text: command)])
    }
}

/// Statements with `$1` in place of `?`, by their text.
enum PlacedTexts {
    private static let known = KnownTexts<String>()

    static func text(of text: String) -> String { known.find(text) { place(text) } }

    private static func place(_ text: String) -> String {
        var placed: [UInt8] = []
        var count = 0
        var quote: UInt8?
        for byte in text.utf8 {
            if let open = quote {
                if byte == open { quote = nil }
            } else if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
                quote = byte
            } else if byte == UInt8(ascii: "?") {
                count += 1
                placed += Array("$\(count)".utf8)
                continue
            }
            placed.append(byte)
        }
        return String(decoding: placed, as: UTF8.self)
    }
}

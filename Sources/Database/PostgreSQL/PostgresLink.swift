import CPostgreSQL
import Foundation

/// One connection of libpq, always in pipeline mode: commands travel together and are answered together.
///
/// Belongs to one thread at a time.
final class PostgresLink {
    struct Command {
        var text: String
        var values: [SQLValue] = []
        /// Texts that come once are not worth a name.
        var isPrepared = true
    }

    /// Texts that a connection has prepared at most; see `StoreOptions.statementsMax`.
    private let statementsMax: Int
    private let preparesByName: Bool
    /// A little longer than the server's own limit, which gives a better error and leaves the connection usable.
    private let patience: Duration?
    private let handle: OpaquePointer
    private var names: [String: String] = [:]
    private var namesMade = 0
    /// Answers that were not waited for.
    private var unread: [Expected] = []
    /// The server is gone, or has not answered in time: nothing more can be asked.
    private(set) var isBroken = false
    /// The commands of the last exchange that were done; nil when none of them was sent.
    private(set) var completed: Int?
    /// The results of the last exchange, up to its first error.
    private(set) var results: [PostgresResult] = []
    /// Called once in an exchange that is not answered within a millisecond.
    var onSlow: (() -> Void)?
    /// When the present exchange becomes slow; nil once that was reported.
    private var slowAt: ContinuousClock.Instant?

    private enum Expected {
        case prepared(text: String, name: String)
        case result
        case sync
    }

    /// - Throws: `.unavailable` when no server can be reached, or it refuses the login.
    init(_ address: String, options: StoreOptions) throws(DatabaseError) {
        // First what the address may replace, then the address. A server that has vanished without a word is noticed
        // within some ten seconds.
        let parameters: [(String, String)] = [
            ("application_name", "bellhop"), ("connect_timeout", "2"), ("keepalives_idle", "5"),
            ("keepalives_interval", "2"), ("keepalives_count", "3"), ("tcp_user_timeout", "10000"),
            ("client_encoding", "UTF8"), ("options", Self.startOptions(options)), ("dbname", address),
        ]
        var keywords: [UnsafePointer<CChar>?] = parameters.map { UnsafePointer(strdup($0.0)) }
        var values: [UnsafePointer<CChar>?] = parameters.map { UnsafePointer(strdup($0.1)) }
        defer { for text in keywords + values { free(UnsafeMutablePointer(mutating: text)) } }
        keywords.append(nil)
        values.append(nil)
        guard let handle = PQconnectdbParams(keywords, values, 1) else {
            throw DatabaseError(.outOfMemory, "no memory for a connection")
        }
        self.handle = handle
        statementsMax = options.statementsMax
        preparesByName = !options.isPooled
        patience = options.access == .owner ? nil : options.statementTimeout + .seconds(1)
        guard PQstatus(handle) == CONNECTION_OK else {
            // `deinit` closes it: everything has its value.
            let reason = Self.message(of: handle)
            throw DatabaseError(.unavailable, "cannot connect: \(reason)")
        }
        // A standby may lack what was answered, and takes no writes; the server reports it by itself.
        guard options.access == .readOnly || !isStandby else {
            throw DatabaseError(.unavailable, "cannot connect: the server is a standby")
        }
        // Notices are for people at a terminal.
        PQsetNoticeProcessor(handle, { _, _ in }, nil)
        PQsetnonblocking(handle, 1)
        PQenterPipelineMode(handle)
    }

    deinit {
        PQfinish(handle)
    }

    /// How the server treats a session of the service.
    ///
    /// It gives up a statement that takes too long, and a transaction whose client is silent: without that a replica that
    /// stops in the middle would lock its rows, and with them everybody, until TCP gives it up. And it compiles no
    /// statement: each touches a few rows, but with the policies, or before a table has been analyzed, it can look so
    /// costly that the server spends half a second of compilation on what takes a millisecond.
    static func sessionSettings(_ options: StoreOptions) -> [(name: String, value: String)] {
        let milliseconds = "\(options.statementTimeout.milliseconds)"
        return [
            ("statement_timeout", milliseconds), ("idle_in_transaction_session_timeout", milliseconds), ("jit", "off"),
        ]
    }

    /// A pooler takes no options; what makes the tables may take its time.
    private static func startOptions(_ options: StoreOptions) -> String {
        guard !options.isPooled, options.access != .owner else { return "" }
        return sessionSettings(options).map { "-c \($0.name)=\($0.value)" }.joined(separator: " ")
    }

    var socket: Int32 { PQsocket(handle) }

    private var isStandby: Bool {
        PQparameterStatus(handle, "in_hot_standby").map { String(cString: $0) } == "on"
    }

    /// Nothing more is asked: the server rolls back what is open.
    func abandon() { isBroken = true }

    /// Whether the server has said goodbye while nobody asked.
    func looksAlive() -> Bool {
        guard !isBroken else { return false }
        var descriptor = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard poll(&descriptor, 1, 0) > 0 else { return true }
        isBroken = PQconsumeInput(handle) == 0 || PQstatus(handle) != CONNECTION_OK
        return !isBroken
    }

    // MARK: Asking

    /// Has the server forget the prepared texts when they are too many. Between transactions: one that has failed would
    /// refuse it.
    func forgetIfFull() throws(DatabaseError) {
        guard names.count >= statementsMax else { return }
        names = [:]
        _ = try exchange([Command(text: "DEALLOCATE ALL", isPrepared: false)])
    }

    /// Runs a command that needs no transaction, scope or policy: for the store's own questions to the server.
    func ask(_ text: String, _ values: [SQLValue] = []) throws(DatabaseError) -> [[String?]] {
        let rows = PostgresRows(try exchange([Command(text: text, values: values, isPrepared: false)])[0], text: text)
        var table: [[String?]] = []
        while rows.advance() {
            table.append(
                (0..<rows.columnCount).map { index in
                    rows.type(at: index) == .null
                        ? nil : String(decoding: rows.bytes(at: index, isText: true), as: UTF8.self)
                })
        }
        return table
    }

    /// Sends the commands in one go and waits for their answers. After the first error the others are not done.
    ///
    /// - Throws: the first error of the server; `.unavailable` when the connection is lost.
    func exchange(_ commands: [Command]) throws(DatabaseError) -> [PostgresResult] {
        completed = nil
        results = []
        slowAt = onSlow == nil ? nil : .now + .milliseconds(1)
        let deadline = patience.map { ContinuousClock.now + $0 }
        let before = unread
        unread = []
        let expected: [Expected]
        do {
            expected = try send(commands)
        } catch {
            unread = before
            throw error
        }
        completed = 0
        for one in before { _ = try receive(one, deadline) }
        let (found, failure) = try receive(expected, commands, deadline)
        results = found
        completed = found.count
        if let failure { throw failure }
        return results
    }

    /// Reads the answers to a group of commands: their results up to the first error.
    private func receive(
        _ expected: [Expected], _ commands: [Command], _ deadline: ContinuousClock.Instant?
    ) throws(DatabaseError) -> ([PostgresResult], DatabaseError?) {
        var results: [PostgresResult] = []
        var failure: DatabaseError?
        var command = 0
        for one in expected {
            let result = try receive(one, deadline)
            switch one {
            case .sync: continue
            case .prepared(let text, let name):
                if result?.isOK == true { continue }
                if names[text] == name { names[text] = nil }
                failure = failure ?? result?.error(text)
            case .result:
                if let result, result.isOK {
                    results.append(result)
                } else if let result {
                    failure = failure ?? result.error(commands[command].text)
                }
                command += 1
            }
        }
        return (results, failure)
    }

    /// Sends the commands and does not wait; their answers are read, and forgotten, before the next ones.
    func post(_ commands: [Command]) throws(DatabaseError) {
        unread += try send(commands)
        // What the kernel does not take now goes with the next exchange.
        if PQflush(handle) < 0 { throw lost() }
    }

    private func send(_ commands: [Command]) throws(DatabaseError) -> [Expected] {
        guard !isBroken else { throw lost() }
        var expected: [Expected] = []
        // All of them first: what cannot be sent must not leave half of its company on the way.
        let values = try commands.map { command throws(DatabaseError) in
            try Parameters(command.values, of: command.text)
        }
        for (command, parameters) in zip(commands, values) {
            var isSent = true
            if preparesByName, command.isPrepared {
                let name: String
                if let prepared = names[command.text] {
                    name = prepared
                } else {
                    namesMade += 1
                    name = "b\(namesMade)"
                    // What follows may use it at once; if it could not be made, that fails too.
                    names[command.text] = name
                    isSent = PQsendPrepare(handle, name, command.text, 0, nil) == 1
                    expected.append(.prepared(text: command.text, name: name))
                }
                isSent =
                    isSent
                    && parameters.withPointers { count, values, lengths, formats in
                        PQsendQueryPrepared(handle, name, count, values, lengths, formats, 0) == 1
                    }
            } else {
                isSent = parameters.withPointers { count, values, lengths, formats in
                    PQsendQueryParams(handle, command.text, count, nil, values, lengths, formats, 0) == 1
                }
            }
            guard isSent else { throw lost() }
            expected.append(.result)
        }
        guard PQpipelineSync(handle) == 1 else { throw lost() }
        expected.append(.sync)
        return expected
    }

    // MARK: Answers

    private func receive(
        _ expected: Expected, _ deadline: ContinuousClock.Instant?
    ) throws(DatabaseError) -> PostgresResult? {
        var found: PostgresResult?
        while true {
            while PQisBusy(handle) == 1 { try waitForInput(deadline) }
            guard let result = PQgetResult(handle) else {
                if case .sync = expected {
                    // Nothing is left to come, and the sync has not: the server is gone.
                    if PQstatus(handle) != CONNECTION_OK { throw lost() }
                    try waitForInput(deadline)
                    continue
                }
                if found == nil, PQstatus(handle) != CONNECTION_OK { throw lost() }
                return found
            }
            let status = PQresultStatus(result)
            if case .sync = expected {
                PQclear(result)
                if status == PGRES_PIPELINE_SYNC { return nil }
                if PQstatus(handle) != CONNECTION_OK { throw lost() }
                continue
            }
            let owned = PostgresResult(result)
            if PQstatus(handle) != CONNECTION_OK { throw lost(owned.message) }
            if owned.endsConnection { isBroken = true }
            if found == nil { found = owned }
        }
    }

    private func waitForInput(_ deadline: ContinuousClock.Instant?) throws(DatabaseError) {
        let flushed = PQflush(handle)
        if flushed < 0 { throw lost() }
        var milliseconds: Int32 = -1
        if let deadline {
            let left = (deadline - ContinuousClock.now).milliseconds
            guard left > 0 else {
                isBroken = true
                throw DatabaseError(.unavailable, "the database did not answer in time", cause: .interrupted)
            }
            milliseconds = Int32(clamping: left)
        }
        let events = Int16(POLLIN) | (flushed == 1 ? Int16(POLLOUT) : 0)
        var descriptor = pollfd(fd: socket, events: events, revents: 0)
        var ready: Int32 = 0
        if let slowAt {
            if ContinuousClock.now < slowAt { ready = poll(&descriptor, 1, 1) }
            if ready == 0 {
                self.slowAt = nil
                onSlow?()
            }
        }
        if ready == 0 { ready = poll(&descriptor, 1, milliseconds) }
        if ready < 0 {
            if errno == EINTR { return }
            throw lost()
        }
        if ready > 0, PQconsumeInput(handle) == 0 { throw lost() }
    }

    private func lost(_ reason: String? = nil) -> DatabaseError {
        isBroken = true
        return DatabaseError(.unavailable, "the connection is lost: \(reason ?? Self.message(of: handle))")
    }

    private static func message(of handle: OpaquePointer) -> String {
        let text = PQerrorMessage(handle).map { String(cString: $0) } ?? ""
        let line = text.split(separator: "\n").joined(separator: "; ")
        return line.isEmpty ? "the server has closed it" : line
    }

    // MARK: Notifications

    /// Waits for notifications up to a time; gives their payloads.
    ///
    /// - Throws: `.unavailable` when the connection is lost.
    func notifications(within milliseconds: Int32) throws(DatabaseError) -> [String] {
        guard !isBroken else { throw lost() }
        let known = taken()
        if !known.isEmpty { return known }
        var descriptor = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard poll(&descriptor, 1, milliseconds) > 0 else { return [] }
        guard PQconsumeInput(handle) == 1, PQstatus(handle) == CONNECTION_OK else { throw lost() }
        return taken()
    }

    /// Those that have been read, with the answer to something else too.
    private func taken() -> [String] {
        var payloads: [String] = []
        while let notification = PQnotifies(handle) {
            payloads.append(String(cString: notification.pointee.extra))
            PQfreemem(notification)
        }
        return payloads
    }
}

/// The values of a statement in libpq's form: texts that end with a zero, blobs with their length.
private struct Parameters {
    private var storage: [UInt8] = []
    private var offsets: [Int?] = []
    private var lengths: [Int32] = []
    private var formats: [Int32] = []

    init(_ values: [SQLValue], of text: String) throws(DatabaseError) {
        for value in values {
            var bytes: [UInt8]
            switch value {
            case .null:
                offsets.append(nil)
                lengths.append(0)
                formats.append(0)
                continue
            case .integer(let number): bytes = Array(String(number).utf8)
            case .real(let number): bytes = Array("\(number)".utf8)
            case .text(let string): bytes = Array(string.utf8)
            case .utf8(let utf8): bytes = utf8
            case .blob(let blob): bytes = blob
            }
            let isBlob = if case .blob = value { true } else { false }
            if !isBlob, bytes.contains(0) { throw .withNull(text) }
            offsets.append(storage.count)
            lengths.append(Int32(clamping: bytes.count))
            formats.append(isBlob ? 1 : 0)
            bytes.append(0)
            storage += bytes
        }
    }

    func withPointers<Result>(
        _ body: (
            Int32, UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?
        ) -> Result
    ) -> Result {
        guard !offsets.isEmpty else { return body(0, nil, nil, nil) }
        return storage.withUnsafeBytes { bytes in
            // An empty array has no address, and a null pointer would mean NULL; there is one if any value is not.
            let base = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            let pointers = offsets.map { offset in offset.flatMap { base?.advanced(by: $0) } }
            return body(Int32(offsets.count), pointers, lengths, formats)
        }
    }
}

extension SQL.Woven {
    /// Why PostgreSQL could not be asked.
    var unsendable: DatabaseError? {
        let hasNull = binds.contains { value in
            switch value {
            case .text(let text): text.utf8.contains(0)
            case .utf8(let bytes): bytes.contains(0)
            case .null, .integer, .real, .blob: false
            }
        }
        return hasNull ? .withNull(text) : nil
    }
}

extension DatabaseError {
    fileprivate static func withNull(_ sql: String) -> DatabaseError {
        DatabaseError(.text, "a text holds U+0000, which PostgreSQL cannot store", sql: sql)
    }
}

/// One answer of the server.
final class PostgresResult {
    let handle: OpaquePointer

    init(_ handle: OpaquePointer) {
        self.handle = handle
    }

    deinit {
        PQclear(handle)
    }

    var isOK: Bool {
        let status = PQresultStatus(handle)
        return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK
    }

    var rowCount: Int { Int(PQntuples(handle)) }
    /// `COMMIT`, `INSERT 0 1`.
    var tag: String { String(cString: PQcmdStatus(handle)) }
    var changedRows: Int { Int(String(cString: PQcmdTuples(handle))) ?? 0 }
    var message: String { field(cpostgresql_field_message()) ?? "" }

    /// The text in the first row's first column.
    var firstText: String? {
        guard rowCount > 0, PQgetisnull(handle, 0, 0) == 0, let start = PQgetvalue(handle, 0, 0) else { return nil }
        return String(cString: start)
    }

    /// A server that only reads, after a switchover; a plan that a migration has made useless. What is prepared here, and
    /// what belongs elsewhere, is not asked again.
    var endsConnection: Bool { !isOK && ["25006", "0A000"].contains(field(cpostgresql_field_sqlstate())) }

    /// Nil for what was not done because of an earlier error.
    func error(_ text: String) -> DatabaseError? {
        guard PQresultStatus(handle) != PGRES_PIPELINE_ABORTED else { return nil }
        let state = field(cpostgresql_field_sqlstate()) ?? "XX000"
        return DatabaseError(
            DatabaseError.Code(sqlState: state), "\(message) [PostgreSQL \(state)]", sql: text)
    }

    private func field(_ code: Int32) -> String? {
        PQresultErrorField(handle, code).map { String(cString: $0) }
    }
}

extension DatabaseError.Code {
    /// The code for an SQLSTATE (PostgreSQL, Appendix A).
    init(sqlState state: String) {
        switch state {
        case "23505": self = .constraintUnique
        case "23514": self = .constraintCheck
        case "23503": self = .constraintForeignKey
        case "23502": self = .constraintNotNull
        case "42501": self = .notPermitted
        // Serialization failure, deadlock, lock not available.
        case "40001", "40P01", "55P03": self = .contended
        case "53100": self = .full
        case "57014": self = .interrupted
        // A statement that was to be prepared in a part of the conversation that failed.
        case "26000": self = .unavailable
        // A server that only reads; a plan of before a migration.
        case "25006", "0A000": self = .unavailable
        case "22021", "22P05": self = .text
        case "54000": self = .tooBig
        default:
            switch state.prefix(2) {
            case "08", "53", "57": self = .unavailable
            case "58": self = .ioError
            case "23", "P0": self = .constraint
            case "42", "22": self = .statement
            default: self = .other
            }
        }
    }
}

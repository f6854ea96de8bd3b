import CPostgreSQL
import Foundation

/// One connection of libpq, always in pipeline mode: commands are sent together and answered together.
///
/// It belongs to one thread at a time.
final class PostgresLink {
    struct Command {
        var text: String
        var values: [SQLValue] = []
        /// Whether to prepare the text. A text that is used only once is not worth it.
        var isPrepared = true
    }

    /// The maximum number of prepared texts; see `StoreOptions.statementsMax`.
    private let statementsMax: Int
    private let preparesByName: Bool
    /// Slightly longer than the server's own limit, which gives a better error and leaves the connection usable.
    private let patience: Duration?
    private let handle: OpaquePointer
    private var names: [String: String] = [:]
    private var nameCount = 0
    /// Answers that were not waited for.
    private var unread: [Expected] = []
    /// Whether the connection is unusable, because the server is gone or has not answered in time.
    private(set) var isBroken = false
    /// The number of completed commands of the last exchange; nil if nothing was sent.
    private(set) var completed: Int?
    /// The results of the last exchange, up to its first error.
    private(set) var results: [PostgresResult] = []
    /// Called once in an exchange that is not answered within a millisecond.
    var onSlow: (() -> Void)?
    /// The time at which the current exchange becomes slow; nil once that was reported.
    private var slowAt: ContinuousClock.Instant?

    private enum Expected {
        case prepared(text: String, name: String)
        case result
        case sync
    }

    /// Connects to the server.
    ///
    /// - Throws: `.unavailable` if no server can be reached, or it refuses the login.
    init(_ address: String, options: StoreOptions) throws(DatabaseError) {
        // Defaults first; parameters of the URL override them. A server that disappears silently is detected within
        // some ten seconds.
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
            throw DatabaseError(.outOfMemory, "out of memory for a connection")
        }
        self.handle = handle
        statementsMax = options.statementsMax
        preparesByName = !options.isPooled
        patience = options.access == .owner ? nil : options.statementTimeout + .seconds(1)
        guard PQstatus(handle) == CONNECTION_OK else {
            // All properties are initialized, so `deinit` closes the connection.
            let reason = Self.message(of: handle)
            throw DatabaseError(.unavailable, "cannot connect: \(reason)")
        }
        // A standby may lack acknowledged writes, and accepts no writes. The server reports its state by itself.
        guard options.access == .readOnly || !isStandby else {
            throw DatabaseError(.unavailable, "cannot connect: the server is a standby")
        }
        // Notices are meant for people at a terminal.
        PQsetNoticeProcessor(handle, { _, _ in }, nil)
        PQsetnonblocking(handle, 1)
        PQenterPipelineMode(handle)
    }

    deinit {
        PQfinish(handle)
    }

    /// Returns the server's settings for a session of the service.
    ///
    /// The server cancels a statement that takes too long, and a transaction whose client is silent. Otherwise a
    /// replica that stops midway would keep its row locks, and block all others, until TCP gives up.
    ///
    /// JIT compilation is off. Each statement touches only a few rows. But with the policies, or before a table has
    /// been analyzed, it can look expensive, and the server would compile for half a second what runs in a millisecond.
    static func sessionSettings(_ options: StoreOptions) -> [(name: String, value: String)] {
        let milliseconds = "\(options.statementTimeout.milliseconds)"
        return [
            ("statement_timeout", milliseconds), ("idle_in_transaction_session_timeout", milliseconds), ("jit", "off"),
        ]
    }

    /// Returns the options for the start of a connection. A pooler accepts no options; schema changes have no time
    /// limit.
    private static func startOptions(_ options: StoreOptions) -> String {
        guard !options.isPooled, options.access != .owner else { return "" }
        return sessionSettings(options).map { "-c \($0.name)=\($0.value)" }.joined(separator: " ")
    }

    var socket: Int32 { PQsocket(handle) }

    private var isStandby: Bool {
        PQparameterStatus(handle, "in_hot_standby").map { String(cString: $0) } == "on"
    }

    /// Marks the connection as unusable. The server rolls back the open transaction.
    func abandon() { isBroken = true }

    /// Whether the server has closed the connection while it was idle.
    func isAlive() -> Bool {
        guard !isBroken else { return false }
        var descriptor = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard poll(&descriptor, 1, 0) > 0 else { return true }
        isBroken = PQconsumeInput(handle) == 0 || PQstatus(handle) != CONNECTION_OK
        return !isBroken
    }

    // MARK: Requests

    /// Makes the server forget the prepared texts if there are too many. To be called between transactions, because a
    /// failed transaction would refuse it.
    func forgetIfFull() throws(DatabaseError) {
        guard names.count >= statementsMax else { return }
        names = [:]
        _ = try exchange([Command(text: "DEALLOCATE ALL", isPrepared: false)])
    }

    /// Runs a command that needs no transaction, scope or policy, for the store's own queries to the server.
    func ask(_ text: String, _ values: [SQLValue] = []) throws(DatabaseError) -> [[String?]] {
        let rows = PostgresRows(try exchange([Command(text: text, values: values, isPrepared: false)])[0])
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

    /// Sends the commands together and waits for their answers. After the first error, the remaining commands are not
    /// executed.
    ///
    /// - Throws: The first error of the server; `.unavailable` if the connection is lost.
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

    /// Sends the commands without waiting. Their answers are read and discarded before the next commands.
    func post(_ commands: [Command]) throws(DatabaseError) {
        unread += try send(commands)
        // Bytes that the kernel does not accept now are sent with the next exchange.
        if PQflush(handle) < 0 { throw lost() }
    }

    private func send(_ commands: [Command]) throws(DatabaseError) -> [Expected] {
        guard !isBroken else { throw lost() }
        var expected: [Expected] = []
        // Converts all values first, so that an unsendable value does not leave a half-sent group.
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
                    nameCount += 1
                    name = "b\(nameCount)"
                    // Later commands may use the statement at once. If it cannot be prepared, they fail too.
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
                    // Nothing is left to read and the sync has not arrived, so the server is gone.
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
        // libpq indents its hints by a tab.
        let line = text.split(separator: "\n").map { $0.drop(while: \.isWhitespace) }.joined(separator: "; ")
        return line.isEmpty ? "the server closed the connection" : line
    }

    // MARK: Notifications

    /// Waits for notifications up to a time limit, and returns their payloads.
    ///
    /// - Throws: `.unavailable` if the connection is lost.
    func notifications(within milliseconds: Int32) throws(DatabaseError) -> [(channel: String, payload: String)] {
        guard !isBroken else { throw lost() }
        let known = takeNotifications()
        if !known.isEmpty { return known }
        var descriptor = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard poll(&descriptor, 1, milliseconds) > 0 else { return [] }
        guard PQconsumeInput(handle) == 1, PQstatus(handle) == CONNECTION_OK else { throw lost() }
        return takeNotifications()
    }

    /// Returns the notifications that have been read so far, including notifications that arrived with other answers.
    private func takeNotifications() -> [(channel: String, payload: String)] {
        var found: [(channel: String, payload: String)] = []
        while let notification = PQnotifies(handle) {
            found.append((String(cString: notification.pointee.relname), String(cString: notification.pointee.extra)))
            PQfreemem(notification)
        }
        return found
    }
}

/// The values of a statement in libpq's form: zero-terminated texts, and blobs with their length.
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
            // An empty array has no address, and a null pointer would mean NULL. There is an address if any value is
            // not null.
            let base = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            let pointers = offsets.map { offset in offset.flatMap { base?.advanced(by: $0) } }
            return body(Int32(offsets.count), pointers, lengths, formats)
        }
    }
}

extension SQL.Woven {
    /// The error of a statement that PostgreSQL cannot accept; nil if it can.
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
        DatabaseError(.text, "a string contains U+0000, which PostgreSQL cannot store", sql: sql)
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
    /// The command tag: `COMMIT`, `INSERT 0 1`.
    var tag: String { String(cString: PQcmdStatus(handle)) }
    var changedRows: Int { Int(String(cString: PQcmdTuples(handle))) ?? 0 }
    var message: String { field(cpostgresql_field_message()) ?? "" }

    /// The text in the first column of the first row.
    var firstText: String? {
        guard rowCount > 0, PQgetisnull(handle, 0, 0) == 0, let start = PQgetvalue(handle, 0, 0) else { return nil }
        return String(cString: start)
    }

    /// Whether the connection must be replaced: the server became read-only after a switchover, or a migration
    /// invalidated a plan. The statements prepared here must not be used again.
    var endsConnection: Bool { !isOK && ["25006", "0A000"].contains(field(cpostgresql_field_sqlstate())) }

    /// Returns the error of the result; nil if the command was skipped because of an earlier error.
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
    /// Creates the code for an SQLSTATE (PostgreSQL, Appendix A).
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
        // The statement was to be prepared in a part of the pipeline that failed.
        case "26000": self = .unavailable
        // A read-only server; a plan from before a migration.
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

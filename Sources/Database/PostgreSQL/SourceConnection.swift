import CPostgreSQL
import Foundation

/// The reason why a request to an app's PostgreSQL failed.
public struct SourceError: Error, Sendable, CustomStringConvertible {
    /// Nil if the connection could not be established, or was lost.
    public let sqlState: String?
    public let description: String

    init(_ sqlState: String?, _ text: String) {
        self.sqlState = sqlState
        // libpq indents the lines after the first.
        description = text.split(separator: "\n").map { $0.drop { $0 == "\t" || $0 == " " } }.joined(separator: "; ")
    }

    /// Whether a named object, such as a publication, does not exist.
    public var isUndefinedObject: Bool { sqlState == "42704" }

    /// Whether another attempt may succeed without a change by an operator: the server is unreachable, is starting, or
    /// has no free connection.
    public var isTransient: Bool {
        guard let sqlState else { return true }
        return ["08", "53", "57"].contains(sqlState.prefix(2))
    }
}

/// A connection to an app's PostgreSQL, whose log is read: either an ordinary or a replication connection.
///
/// It is not a connection of the store: it knows no policies, and is connected to another server. It never blocks for
/// longer than ``pauseMilliseconds`` without checking whether to stop. It belongs to one thread at a time.
public final class SourceConnection {
    /// The interval at which a wait checks whether to stop, in milliseconds.
    private static let pauseMilliseconds: Int32 = 250
    /// Maximum seconds for a statement of an ordinary session. Each reads a few catalog rows or writes one message, in
    /// milliseconds. A slower one hangs, and the reader would hang with it unnoticed.
    public static let statementSecondsMax = 30
    /// Maximum seconds to wait for a table's lock. A waiting request blocks all later ones of the app behind it.
    public static let lockSecondsMax = 5

    /// The settings of every session. The search path comes first: objects of the app are never found by an unqualified
    /// name, so that its functions, operators and casts never run with the reader's rights. Then follow the text
    /// formats, and the timeouts that end a session whose peer has vanished: a dead process releases the slot and its
    /// lock within ten seconds. A session's own writes wait for the disk, but not for standbys.
    private static let settings = [
        "search_path = pg_catalog, pg_temp", "DateStyle = ISO", "IntervalStyle = postgres", "TimeZone = 'UTC'",
        "bytea_output = hex", "extra_float_digits = 1", "idle_in_transaction_session_timeout = 0", "row_security = off",
        "synchronous_commit = local", "wal_sender_timeout = 8000", "tcp_keepalives_idle = 4",
        "tcp_keepalives_interval = 2", "tcp_keepalives_count = 2",
    ]

    private let handle: OpaquePointer
    private let replicates: Bool
    private let shouldStop: () -> Bool

    /// Connects to the server.
    ///
    /// - Parameters:
    ///   - replicates: Whether the connection accepts replication commands, and no parameters.
    ///   - shouldStop: Whether to give up waiting.
    public init(
        _ url: DatabaseURL, replicates: Bool = false, shouldStop: @escaping () -> Bool = { false }
    ) throws(SourceError) {
        guard case .server(let address) = url.location else { throw SourceError("42601", "is not a postgres:// URL") }
        var parameters = [
            ("application_name", "bellhop"), ("connect_timeout", "2"), ("keepalives_idle", "5"),
            ("keepalives_interval", "2"), ("keepalives_count", "3"), ("tcp_user_timeout", "10000"), ("dbname", address),
            ("client_encoding", "UTF8"),
        ]
        if replicates { parameters.append(("replication", "database")) }
        var keywords: [UnsafePointer<CChar>?] = parameters.map { UnsafePointer(strdup($0.0)) }
        var values: [UnsafePointer<CChar>?] = parameters.map { UnsafePointer(strdup($0.1)) }
        defer { for text in keywords + values { free(UnsafeMutablePointer(mutating: text)) } }
        keywords.append(nil)
        values.append(nil)
        guard let handle = PQconnectdbParams(keywords, values, 1) else { throw SourceError(nil, "no memory") }
        self.handle = handle
        self.replicates = replicates
        self.shouldStop = shouldStop
        guard PQstatus(handle) == CONNECTION_OK else {
            throw SourceError(Self.refusal(in: Self.message(of: handle)), "cannot connect: \(Self.message(of: handle))")
        }
        PQsetNoticeProcessor(handle, { _, _ in }, nil)
        PQsetnonblocking(handle, 1)
        // A replication stream is one statement, and takes no table locks.
        let timeouts = [
            "statement_timeout = '\(replicates ? 0 : Self.statementSecondsMax)s'",
            "lock_timeout = '\(replicates ? 0 : Self.lockSecondsMax)s'",
        ]
        for setting in Self.settings + timeouts { _ = try ask("SET \(setting)") }
    }

    deinit { PQfinish(handle) }

    /// The server's version as a number, such as 140005.
    public var serverVersion: Int { Int(PQserverVersion(handle)) }

    /// Returns a code for a failed login. libpq provides no code, so the server's message is interpreted, only here. It
    /// recognizes a parameter that a pooler does not know, and problems that an operator must fix.
    private static func refusal(in message: String) -> String? {
        let states = [
            ("startup parameter", "0A000"), ("password authentication failed", "28P01"),
            ("no pg_hba.conf entry", "28000"),
            ("permission denied", "42501"), ("must be superuser or replication role", "42501"),
            ("does not exist", "3D000"),
        ]
        return states.first { message.contains($0.0) }?.1
    }

    private static func message(of handle: OpaquePointer) -> String {
        let text = PQerrorMessage(handle).map { String(cString: $0) } ?? ""
        return text.isEmpty ? "the server closed the connection" : text
    }

    private func lost() -> SourceError { SourceError(nil, "the connection is lost: \(Self.message(of: handle))") }

    // MARK: Requests

    /// Runs a statement or a replication command, and returns its rows.
    ///
    /// - Parameter values: The values in text form. Only an ordinary connection accepts any.
    public func ask(_ text: String, _ values: [String?] = []) throws(SourceError) -> [[String?]] {
        let sendResult: Int32
        if replicates {
            sendResult = PQsendQuery(handle, text)
        } else {
            let copies = values.map { $0.map { UnsafePointer(strdup($0)) } ?? nil }
            defer { for copy in copies { free(UnsafeMutablePointer(mutating: copy)) } }
            sendResult = PQsendQueryParams(handle, text, Int32(copies.count), nil, copies, nil, nil, 0)
        }
        guard sendResult == 1 else { throw lost() }
        var rows: [[String?]] = []
        var failure: SourceError?
        while let result = try nextResult() {
            switch PQresultStatus(result.handle) {
            case PGRES_TUPLES_OK: rows = Self.rows(of: result)
            case PGRES_COMMAND_OK: break
            // A stream follows, not a result.
            case PGRES_COPY_BOTH: return []
            default: failure = failure ?? error(of: result)
            }
        }
        if let failure { throw failure }
        return rows
    }

    /// Runs `COPY … TO STDOUT`, and passes on each line as it arrives. If the receiver throws, the connection is
    /// unusable.
    public func copyOut(_ text: String, _ receive: (ArraySlice<UInt8>) throws -> Void) throws {
        guard PQsendQueryParams(handle, text, 0, nil, nil, nil, nil, 0) == 1 else { throw lost() }
        while let result = try nextResult() {
            let status = PQresultStatus(result.handle)
            if status == PGRES_COPY_OUT { break }
            throw error(of: result)
        }
        while true {
            var buffer: UnsafeMutablePointer<CChar>?
            let count = PQgetCopyData(handle, &buffer, 1)
            defer { PQfreemem(buffer) }
            if count > 0, let buffer {
                try receive(Array(UnsafeRawBufferPointer(start: buffer, count: Int(count)))[...])
            } else if count == 0 {
                try waitForInput(Self.pauseMilliseconds)
                if shouldStop() { throw SourceError(nil, "the service is stopping") }
            } else {
                break
            }
        }
        while let result = try nextResult() {
            if PQresultStatus(result.handle) != PGRES_COMMAND_OK { throw error(of: result) }
        }
    }

    private func error(of result: PostgresResult) -> SourceError {
        let state = PQresultErrorField(result.handle, cpostgresql_field_sqlstate()).map { String(cString: $0) }
        guard let state, PQstatus(handle) == CONNECTION_OK else { return lost() }
        return SourceError(state, result.message)
    }

    private func nextResult() throws(SourceError) -> PostgresResult? {
        while PQisBusy(handle) == 1 {
            try waitForInput(Self.pauseMilliseconds)
            if shouldStop() { throw SourceError(nil, "the service is stopping") }
        }
        return PQgetResult(handle).map { PostgresResult($0) }
    }

    private static func rows(of result: PostgresResult) -> [[String?]] {
        (0..<PQntuples(result.handle)).map { row in
            (0..<PQnfields(result.handle)).map { column in
                PQgetisnull(result.handle, row, column) == 1
                    ? nil : PQgetvalue(result.handle, row, column).map { String(cString: $0) }
            }
        }
    }

    /// Waits for bytes up to a time limit, and reads them.
    private func waitForInput(_ milliseconds: Int32) throws(SourceError) {
        let flushed = PQflush(handle)
        guard flushed >= 0 else { throw lost() }
        let events = Int16(POLLIN) | (flushed == 1 ? Int16(POLLOUT) : 0)
        var descriptor = pollfd(fd: PQsocket(handle), events: events, revents: 0)
        let ready = poll(&descriptor, 1, milliseconds)
        if ready < 0, errno != EINTR { throw lost() }
        if ready > 0, PQconsumeInput(handle) == 0 { throw lost() }
    }

    // MARK: The stream

    /// Returns the next frame of the stream that a command began, or nil if nothing has arrived.
    ///
    /// - Throws: If the stream has ended, with the server's message.
    public func receive() throws(SourceError) -> [UInt8]? {
        if let frame = try takeFrame() { return frame }
        guard PQconsumeInput(handle) == 1 else { throw lost() }
        return try takeFrame()
    }

    /// Waits for a short time until something arrives.
    public func waitForFrame() throws(SourceError) { try waitForInput(Self.pauseMilliseconds) }

    private func takeFrame() throws(SourceError) -> [UInt8]? {
        var buffer: UnsafeMutablePointer<CChar>?
        let count = PQgetCopyData(handle, &buffer, 1)
        defer { PQfreemem(buffer) }
        if count > 0, let buffer {
            return Array(UnsafeRawBufferPointer(start: buffer, count: Int(count)))
        }
        guard count < 0 else { return nil }
        while let result = try nextResult() {
            let status = PQresultStatus(result.handle)
            if status == PGRES_FATAL_ERROR { throw error(of: result) }
            if status == PGRES_COPY_BOTH || status == PGRES_COPY_IN { break }
        }
        throw SourceError(nil, "the server ended the stream")
    }

    /// Sends a frame. Bytes that the kernel does not accept now are sent with the next frame.
    public func send(_ frame: [UInt8]) throws(SourceError) {
        let code = frame.withUnsafeBytes { bytes in
            PQputCopyData(handle, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
        }
        guard code >= 0, PQflush(handle) >= 0 else { throw lost() }
    }
}

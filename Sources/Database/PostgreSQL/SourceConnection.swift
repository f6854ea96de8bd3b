import CPostgreSQL
import Foundation

/// Why an app's PostgreSQL did not do what it was asked for.
public struct SourceError: Error, Sendable, CustomStringConvertible {
    /// Nil where the connection could not be made, or is lost.
    public let sqlState: String?
    public let description: String

    init(_ sqlState: String?, _ text: String) {
        self.sqlState = sqlState
        // libpq indents what follows the first line.
        description = text.split(separator: "\n").map { $0.drop { $0 == "\t" || $0 == " " } }.joined(separator: "; ")
    }

    /// Whether another attempt may succeed without anybody changing anything: the server is away, starts, or has no
    /// connection left.
    public var isTransient: Bool {
        guard let sqlState else { return true }
        return ["08", "53", "57"].contains(sqlState.prefix(2))
    }
}

/// One connection to the PostgreSQL of an app, whose log is read: an ordinary one, or one of replication.
///
/// It is no connection of the store: it knows no policies, and another server is at its end. It never blocks for longer
/// than ``pauseMilliseconds`` without asking whether to stop. Belongs to one thread at a time.
public final class SourceConnection {
    /// How often a wait asks whether to stop, in milliseconds.
    private static let pauseMilliseconds: Int32 = 250
    /// What texts are written by, and what ends a session whose other end has vanished without a word: within ten seconds
    /// nobody has the slot, or the lock, of a process that is gone.
    private static let settings: [(name: String, value: String)] = [
        ("DateStyle", "ISO"), ("IntervalStyle", "postgres"), ("TimeZone", "UTC"), ("bytea_output", "hex"),
        ("extra_float_digits", "1"), ("statement_timeout", "0"), ("idle_in_transaction_session_timeout", "0"),
        ("row_security", "off"), ("wal_sender_timeout", "8000"), ("tcp_keepalives_idle", "4"),
        ("tcp_keepalives_interval", "2"), ("tcp_keepalives_count", "2"),
    ]

    private let handle: OpaquePointer
    private let replicates: Bool
    private let shouldStop: () -> Bool

    /// - Parameters:
    ///   - replicates: whether it takes commands of replication, and no parameters.
    ///   - shouldStop: whether what is waited for is to be given up.
    public init(
        _ url: DatabaseURL, replicates: Bool = false, shouldStop: @escaping () -> Bool = { false }
    ) throws(SourceError) {
        guard case .server(let address) = url.location else { throw SourceError("42601", "is no postgres:// URL") }
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
        for setting in Self.settings { _ = try ask("SET \(setting.name) = '\(setting.value)'") }
    }

    deinit { PQfinish(handle) }

    /// As 140005.
    public var serverVersion: Int { Int(PQserverVersion(handle)) }

    /// libpq has no code for a login that fails. What the server says in words is told apart here alone: a parameter that
    /// a pooler does not know, and what an operator must mend.
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
        return text.isEmpty ? "the server has closed the connection" : text
    }

    private func lost() -> SourceError { SourceError(nil, "the connection is lost: \(Self.message(of: handle))") }

    // MARK: Asking

    /// Runs a statement, or a command of replication, and gives its rows.
    ///
    /// - Parameter values: in their text form; an ordinary connection alone takes any.
    public func ask(_ text: String, _ values: [String?] = []) throws(SourceError) -> [[String?]] {
        let isSent: Int32
        if replicates {
            isSent = PQsendQuery(handle, text)
        } else {
            let copies = values.map { $0.map { UnsafePointer(strdup($0)) } ?? nil }
            defer { for copy in copies { free(UnsafeMutablePointer(mutating: copy)) } }
            isSent = PQsendQueryParams(handle, text, Int32(copies.count), nil, copies, nil, nil, 0)
        }
        guard isSent == 1 else { throw lost() }
        var rows: [[String?]] = []
        var failure: SourceError?
        while let result = try nextResult() {
            switch PQresultStatus(result.handle) {
            case PGRES_TUPLES_OK: rows = Self.rows(of: result)
            case PGRES_COMMAND_OK: break
            // What follows is a stream, and no result.
            case PGRES_COPY_BOTH: return []
            default: failure = failure ?? error(of: result)
            }
        }
        if let failure { throw failure }
        return rows
    }

    private func error(of result: PostgresResult) -> SourceError {
        let state = PQresultErrorField(result.handle, cpostgresql_field_sqlstate()).map { String(cString: $0) }
        guard let state, PQstatus(handle) == CONNECTION_OK else { return lost() }
        return SourceError(state, result.message)
    }

    private func nextResult() throws(SourceError) -> PostgresResult? {
        while PQisBusy(handle) == 1 {
            try waitForInput(Self.pauseMilliseconds)
            if shouldStop() { throw SourceError(nil, "the service stops") }
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

    /// Waits for bytes up to a time, and reads them.
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

    /// The next frame of the stream that a command began; nil where none has arrived.
    ///
    /// - Throws: when the stream has ended, with what the server said.
    public func receive() throws(SourceError) -> [UInt8]? {
        if let frame = try takeFrame() { return frame }
        guard PQconsumeInput(handle) == 1 else { throw lost() }
        return try takeFrame()
    }

    /// Waits until something has arrived, for a short time.
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
        throw SourceError(nil, "the server has ended the stream")
    }

    /// Sends a frame. What the kernel does not take now goes with what follows.
    public func send(_ frame: [UInt8]) throws(SourceError) {
        let code = frame.withUnsafeBytes { bytes in
            PQputCopyData(handle, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
        }
        guard code >= 0, PQflush(handle) >= 0 else { throw lost() }
    }
}

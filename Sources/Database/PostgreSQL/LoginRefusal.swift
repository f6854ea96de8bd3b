import CPostgreSQL
import Foundation

/// The reason for which a PostgreSQL server refuses a login, by SQLSTATE. The server's message depends on its language.
public struct LoginRefusal: Sendable, Equatable {
    /// The SQLSTATE (PostgreSQL, Appendix A), such as `3D000` for a missing database.
    public let sqlState: String
    public let user: String
    public let database: String

    /// Whether a later attempt is refused too, until someone creates the database or the role, or corrects its password or
    /// right.
    public var isLasting: Bool { ["3D000", "28000", "28P01", "42501"].contains(sqlState) }

    /// Connects once, and returns the refusal; nil if the server accepts the login, or does not answer in time.
    public init?(of url: DatabaseURL, within limit: Duration = .seconds(5)) {
        guard case .server(let address) = url.location else { return nil }
        var keywords: [UnsafePointer<CChar>?] = [UnsafePointer(strdup("dbname")), nil]
        var values: [UnsafePointer<CChar>?] = [UnsafePointer(strdup(address)), nil]
        defer { for text in keywords + values { free(UnsafeMutablePointer(mutating: text)) } }
        guard let handle = PQconnectStartParams(&keywords, &values, 1) else { return nil }
        defer { PQfinish(handle) }
        // The message then consists of a severity and the SQLSTATE.
        PQsetErrorVerbosity(handle, PQERRORS_SQLSTATE)
        guard Self.waitForFailure(of: handle, until: .now + limit),
            let line = PQerrorMessage(handle).map({ String(cString: $0) })?.split(whereSeparator: \.isNewline).last,
            let state = line.split(whereSeparator: \.isWhitespace).last, state.utf8.count == 5,
            state.utf8.allSatisfy({ (48...57).contains($0) || (65...90).contains($0) })
        else { return nil }
        sqlState = String(state)
        user = PQuser(handle).map { String(cString: $0) } ?? ""
        database = PQdb(handle).map { String(cString: $0) } ?? ""
    }

    /// Returns whether the attempt has failed before the deadline.
    private static func waitForFailure(of handle: OpaquePointer, until deadline: ContinuousClock.Instant) -> Bool {
        guard PQstatus(handle) != CONNECTION_BAD else { return true }
        var state = PGRES_POLLING_WRITING
        while state == PGRES_POLLING_WRITING || state == PGRES_POLLING_READING {
            let events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT
            var descriptor = pollfd(fd: PQsocket(handle), events: Int16(events), revents: 0)
            let milliseconds = (deadline - .now) / .milliseconds(1)
            guard milliseconds > 0 else { return false }
            let ready = poll(&descriptor, 1, Int32(milliseconds.rounded(.up)))
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else { return false }
            state = PQconnectPoll(handle)
        }
        return state == PGRES_POLLING_FAILED
    }
}

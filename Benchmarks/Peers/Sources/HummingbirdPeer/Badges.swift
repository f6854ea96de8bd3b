import CSQLitePeer
import Crypto
import Foundation
import HTTPTypes
import Hummingbird

/// `GET /v1/badges` with the same work as Bellhop, written like a Hummingbird application.
final class Badges: Sendable {
    struct Answer: ResponseCodable {
        let messages: Int64
        let requests: Int64
        let bell: Int64
        let total: Int64
        let version: Int64
        let asOf: String
    }

    private struct Claims: Decodable {
        let sub: String
        let exp: Double
        let tenant: String?
    }

    private struct Principal {
        let tenant: String
        let userId: String
        let expiresAt: Double
    }

    private let key: SymmetricKey
    /// Guards `verified` and the prepared statement, which SQLite must not use on two threads at once.
    private let lock = NSLock()
    /// Guarded by `lock`.
    private nonisolated(unsafe) var verified: [String: Principal] = [:]
    /// Guarded by `lock`.
    private nonisolated(unsafe) let statement: OpaquePointer

    /// Opens the database and prepares the query. The query comes from the environment, so that it reads the same table
    /// as the service in the comparison. Its binds are tenant and user, its columns messages, requests, bell, version,
    /// updated at (microseconds).
    init(databasePath: String, secret: String) throws {
        key = SymmetricKey(data: Data(secret.utf8))
        guard let query = ProcessInfo.processInfo.environment["PEER_BADGES_SQL"] else {
            throw PeerError.missingQuery
        }
        _ = peer_disable_memory_statistics()
        var connection: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX
        guard sqlite3_open_v2(databasePath, &connection, flags, nil) == SQLITE_OK else {
            throw PeerError.database(String(cString: sqlite3_errmsg(connection)))
        }
        var prepared: OpaquePointer?
        let status = sqlite3_prepare_v3(connection, query, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
        guard status == SQLITE_OK, let prepared else {
            throw PeerError.database(String(cString: sqlite3_errmsg(connection)))
        }
        statement = prepared
    }

    func respond(to request: Request) throws -> Response {
        guard let authorization = request.headers[.authorization], authorization.hasPrefix("Bearer ") else {
            throw HTTPError(.unauthorized)
        }
        let answer = try lock.withLock {
            let principal = try authenticate(String(authorization.dropFirst(7)))
            return try read(principal)
        }
        let tag = "\"\(answer.version)\""
        if request.headers[.ifNoneMatch] == tag {
            return Response(status: .notModified, headers: [.eTag: tag])
        }
        let body = try JSONEncoder().encode(answer)
        return Response(
            status: .ok,
            headers: [.contentType: "application/json", .eTag: tag],
            body: ResponseBody(byteBuffer: ByteBuffer(data: body))
        )
    }

    /// Verifies HS256 once per token; afterwards a dictionary lookup and a comparison with the clock.
    private func authenticate(_ token: String) throws -> Principal {
        let now = Date().timeIntervalSince1970
        if let principal = verified[token] {
            guard now < principal.expiresAt else { throw HTTPError(.unauthorized) }
            return principal
        }
        let parts = token.split(separator: ".")
        guard parts.count == 3, let signature = Self.base64URL(parts[2]), let payload = Self.base64URL(parts[1]) else {
            throw HTTPError(.unauthorized)
        }
        let signed = Data("\(parts[0]).\(parts[1])".utf8)
        guard HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: signed, using: key) else {
            throw HTTPError(.unauthorized)
        }
        let claims = try JSONDecoder().decode(Claims.self, from: payload)
        guard now < claims.exp else { throw HTTPError(.unauthorized) }
        let principal = Principal(tenant: claims.tenant ?? "default", userId: claims.sub, expiresAt: claims.exp)
        if verified.count >= 10_000 { verified.removeAll() }
        verified[token] = principal
        return principal
    }

    private func read(_ principal: Principal) throws -> Answer {
        defer { sqlite3_reset(statement) }
        let binds = [principal.tenant, principal.userId]
        for (index, value) in binds.enumerated() {
            let bytes = Int32(value.utf8.count)
            guard peer_bind_text(statement, Int32(index + 1), value, bytes) == SQLITE_OK else {
                throw HTTPError(.internalServerError)
            }
        }
        var counts: (messages: Int64, requests: Int64, bell: Int64) = (0, 0, 0)
        var version: Int64 = 0
        var asOf = Date()
        switch sqlite3_step(statement) {
        case SQLITE_ROW:
            counts = (column(0), column(1), column(2))
            version = column(3)
            asOf = Date(timeIntervalSince1970: Double(column(4)) / 1_000_000)
        case SQLITE_DONE: break
        default: throw HTTPError(.internalServerError)
        }
        return Answer(
            messages: counts.messages, requests: counts.requests, bell: counts.bell,
            total: counts.messages + counts.requests + counts.bell, version: version,
            asOf: asOf.formatted(.iso8601))
    }

    private func column(_ index: Int32) -> Int64 { sqlite3_column_int64(statement, index) }

    private static func base64URL(_ text: Substring) -> Data? {
        var standard = text.replacing("-", with: "+").replacing("_", with: "/")
        while standard.utf8.count % 4 != 0 { standard.append("=") }
        return Data(base64Encoded: String(standard))
    }
}

enum PeerError: Error {
    case database(String)
    case missingQuery
}

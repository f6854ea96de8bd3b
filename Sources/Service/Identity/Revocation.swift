import Realtime
import Synchronization
import Threads
import Values

/// Which tokens are no longer valid. Each is of one tenant: a service revokes among its own users.
enum Revocation: Sendable, Hashable {
    case token(tenant: String, id: String)
    case session(tenant: String, id: String)
    /// Every token of the user that was issued before the moment.
    case user(tenant: String, id: ID<User>, issuedBefore: Timestamp)

    func covers(_ caller: Caller) -> Bool {
        switch self {
        case .token(let tenant, let id): caller.tenant == tenant && caller.tokenId == id
        case .session(let tenant, let id): caller.tenant == tenant && caller.sessionId == id
        case .user(let tenant, let id, let moment):
            caller.tenant == tenant && caller.userId == id && caller.issuedAt < moment
        }
    }
}

/// The revocations in force, asked for every request and every opening of a stream.
final class RevocationList: Sendable {
    private struct Key: Hashable {
        let tenant: String
        let id: String
    }

    private struct Tables {
        var tokens: Set<Key> = []
        var sessions: Set<Key> = []
        var users: [Key: Timestamp] = [:]
    }

    private let tables = Locked(Tables())
    /// Lets the usual answer, that nothing is revoked, cost no lock.
    private let isEmpty = Atomic<Bool>(true)

    init(_ revocations: [Revocation] = []) {
        for revocation in revocations { insert(revocation) }
    }

    func insert(_ revocation: Revocation) {
        tables.withLock { tables in
            switch revocation {
            case .token(let tenant, let id): tables.tokens.insert(Key(tenant: tenant, id: id))
            case .session(let tenant, let id): tables.sessions.insert(Key(tenant: tenant, id: id))
            case .user(let tenant, let id, let moment):
                let key = Key(tenant: tenant, id: id.text)
                tables.users[key] = max(moment, tables.users[key] ?? moment)
            }
            isEmpty.store(false, ordering: .releasing)
        }
    }

    func isRevoked(_ caller: Caller) -> Bool {
        guard !isEmpty.load(ordering: .acquiring) else { return false }
        return tables.withLock { tables in
            if let id = caller.tokenId, tables.tokens.contains(Key(tenant: caller.tenant, id: id)) { return true }
            if let id = caller.sessionId, tables.sessions.contains(Key(tenant: caller.tenant, id: id)) { return true }
            guard let moment = tables.users[Key(tenant: caller.tenant, id: caller.userId.text)] else { return false }
            return caller.issuedAt < moment
        }
    }
}

extension Revocation {
    /// The event by which replicas learn of it, which no stream receives.
    static let event: StaticString = "bellhop:revoked"

    /// As the event has it; the tenant is the event's own.
    var json: [UInt8] {
        JSONWriter.object { writer in
            switch self {
            case .token(_, let id): writer.member("tokenId", id)
            case .session(_, let id): writer.member("sessionId", id)
            case .user(_, let id, let moment):
                writer.member("userId", id)
                writer.member("issuedBefore", Int(moment.microseconds))
            }
        }
    }

    /// Nil for what no version of the service has written.
    init?(_ event: StreamEvent) {
        guard case .object(let members)? = try? JSONValue(parsing: event.data) else { return nil }
        let tenant = event.tenant
        if let id = members.string("tokenId") {
            self = .token(tenant: tenant, id: id)
        } else if let id = members.string("sessionId") {
            self = .session(tenant: tenant, id: id)
        } else if let id = members.string("userId"), let moment = members.integer("issuedBefore") {
            self = .user(tenant: tenant, id: ID(id), issuedBefore: Timestamp(microseconds: moment))
        } else {
            return nil
        }
    }
}

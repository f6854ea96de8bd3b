import Domain
import Foundation
import Synchronization

/// Which tokens no longer hold. Each is of one tenant: a service revokes among its own users.
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
///
/// `@unchecked Sendable`: the tables are only touched while `lock` is held.
final class RevocationList: @unchecked Sendable {
    private struct Key: Hashable {
        let tenant: String
        let id: String
    }

    /// Guards the three tables.
    private let lock = NSLock()
    private var tokens: Set<Key> = []
    private var sessions: Set<Key> = []
    private var users: [Key: Timestamp] = [:]
    /// Lets the usual answer, that nothing is revoked, cost no lock.
    private let isEmpty = Atomic<Bool>(true)

    init(_ revocations: [Revocation] = []) {
        for revocation in revocations { insert(revocation) }
    }

    func insert(_ revocation: Revocation) {
        lock.withLock {
            switch revocation {
            case .token(let tenant, let id): tokens.insert(Key(tenant: tenant, id: id))
            case .session(let tenant, let id): sessions.insert(Key(tenant: tenant, id: id))
            case .user(let tenant, let id, let moment):
                let key = Key(tenant: tenant, id: id.text)
                users[key] = max(moment, users[key] ?? moment)
            }
            isEmpty.store(false, ordering: .releasing)
        }
    }

    func isRevoked(_ caller: Caller) -> Bool {
        guard !isEmpty.load(ordering: .acquiring) else { return false }
        return lock.withLock {
            if let id = caller.tokenId, tokens.contains(Key(tenant: caller.tenant, id: id)) { return true }
            if let id = caller.sessionId, sessions.contains(Key(tenant: caller.tenant, id: id)) { return true }
            guard let moment = users[Key(tenant: caller.tenant, id: caller.userId.text)] else { return false }
            return caller.issuedAt < moment
        }
    }
}

import Foundation

/// Counts the open streams of each user, so that one cannot take what all share.
///
/// `@unchecked Sendable`: `counts` is only touched while `lock` is held.
final class StreamAdmission: @unchecked Sendable {
    struct Owner: Hashable, Sendable {
        let tenant: String
        let userId: String
    }

    /// Guards `counts`.
    private let lock = NSLock()
    /// By tenant and user.
    private var counts: [String: [String: Int]] = [:]

    /// Nil when the user has as many as may be.
    func lease(to owner: Owner, max: Int) -> StreamLease? {
        lock.withLock {
            let count = counts[owner.tenant]?[owner.userId] ?? 0
            guard count < max else { return nil }
            counts[owner.tenant, default: [:]][owner.userId] = count + 1
            return StreamLease(owner: owner, admission: self)
        }
    }

    fileprivate func release(_ owner: Owner) {
        lock.withLock {
            let count = counts[owner.tenant]?[owner.userId] ?? 0
            counts[owner.tenant]?[owner.userId] = count > 1 ? count - 1 : nil
            if counts[owner.tenant]?.isEmpty == true { counts[owner.tenant] = nil }
        }
    }

    /// Users of a tenant who have a stream open.
    func users(of tenant: String) -> [String] { (lock.withLock { counts[tenant] } ?? [:]).keys.map { $0 } }

    func hasUsers(of tenant: String) -> Bool { lock.withLock { counts[tenant] != nil } }
}

/// The right to one stream, given back when nobody holds it any more: also when the client vanishes between the
/// answer's head and the stream's opening, of which no callback tells.
final class StreamLease: Sendable {
    private let owner: StreamAdmission.Owner
    private let admission: StreamAdmission

    fileprivate init(owner: StreamAdmission.Owner, admission: StreamAdmission) {
        self.owner = owner
        self.admission = admission
    }

    deinit { admission.release(owner) }
}

import Threads
import Values

/// The number of open streams of each user, which is limited so that one user cannot take the capacity of all.
final class StreamAdmission: Sendable {
    /// The counts by tenant and user.
    private let counts = Locked([ID<Tenant>: [ID<User>: Int]]())

    /// Returns a lease; nil if the user has the maximum number of streams.
    func lease(to owner: Owner, max: Int) -> StreamLease? {
        counts.withLock { counts in
            let count = counts[owner.tenant]?[owner.userId] ?? 0
            guard count < max else { return nil }
            counts[owner.tenant, default: [:]][owner.userId] = count + 1
            return StreamLease(owner: owner, admission: self)
        }
    }

    fileprivate func release(_ owner: Owner) {
        counts.withLock { counts in
            let count = counts[owner.tenant]?[owner.userId] ?? 0
            counts[owner.tenant]?[owner.userId] = count > 1 ? count - 1 : nil
            if counts[owner.tenant]?.isEmpty == true { counts[owner.tenant] = nil }
        }
    }

    func hasStream(_ owner: Owner) -> Bool { counts.withLock { $0[owner.tenant]?[owner.userId] != nil } }

    /// Returns the users of a tenant with an open stream.
    func users(of tenant: ID<Tenant>) -> [String] { (counts.withLock { $0[tenant] } ?? [:]).keys.map(\.text) }

    func hasUsers(of tenant: ID<Tenant>) -> Bool { counts.withLock { $0[tenant] != nil } }
}

/// The right to one stream. It is returned on deallocation. So it is also returned if the client vanishes between the
/// answer's head and the stream's opening, for which there is no callback.
final class StreamLease: Sendable {
    private let owner: Owner
    private let admission: StreamAdmission

    fileprivate init(owner: Owner, admission: StreamAdmission) {
        self.owner = owner
        self.admission = admission
    }

    deinit { admission.release(owner) }
}

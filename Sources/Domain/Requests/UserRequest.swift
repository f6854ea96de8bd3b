import Values

/// A request from one user to another. The other user accepts or declines it.
public struct UserRequest: Sendable, Hashable {
    public enum Kind: String, CaseIterable, Sendable, MemberValue {
        case follow, friend, booking, group
    }

    public enum Status: String, CaseIterable, Sendable, MemberValue {
        case open, accepted, declined
    }

    public var id: ID<UserRequest> = ""
    public var kind = Kind.follow
    public var fromUserId: ID<User> = ""
    public var toUserId: ID<User> = ""
    /// The requester's name, as given by the requester. The service stores no names of users.
    public var fromName: String?
    /// The subject of the request, such as the id of a group or a booking. For each subject, one request of each kind
    /// can be open.
    public var aboutId: String?
    public var status = Status.open
    public var createdAt = Timestamp(microseconds: 0)
    public var answeredAt: Timestamp?
    /// The moment at which the recipient saw the request. The requester does not learn it.
    public var seenAt: Timestamp?

    public init() {}

    public init(
        id: ID<UserRequest>, kind: Kind, fromUserId: ID<User>, toUserId: ID<User>, fromName: String? = nil,
        aboutId: String? = nil, status: Status = .open, createdAt: Timestamp, answeredAt: Timestamp? = nil,
        seenAt: Timestamp? = nil
    ) {
        self.id = id
        self.kind = kind
        self.fromUserId = fromUserId
        self.toUserId = toUserId
        self.fromName = fromName
        self.aboutId = aboutId
        self.status = status
        self.createdAt = createdAt
        self.answeredAt = answeredAt
        self.seenAt = seenAt
    }

    public var isSeen: Bool { seenAt != nil }

    /// The party that answers or withdraws a request.
    public enum Actor: Sendable {
        case requester, recipient, backend
    }

    /// Answers the request. Repeating the same answer is allowed.
    ///
    /// - Throws: 403 for the actor's own request; 409 if it already has another answer.
    public mutating func answer(_ answer: RequestAnswer, by actor: Actor, at now: Timestamp) throws(Failure) {
        guard actor != .requester else {
            throw .forbidden("Only the recipient may answer this request.", code: "request.not_yours")
        }
        guard status != answer.status else { return }
        guard status == .open else { throw Self.answered(status) }
        status = answer.status
        answeredAt = now
    }

    /// Checks that the actor may withdraw the request.
    ///
    /// - Throws: 403 for the request of another user; 409 for an answered request.
    public func checkWithdrawal(by actor: Actor) throws(Failure) {
        guard actor != .recipient else {
            throw .forbidden("Only the sender may withdraw this request.", code: "request.not_yours")
        }
        guard status == .open else { throw Self.answered(status) }
    }

    private static func answered(_ status: Status) -> Failure {
        Failure(.conflict, "request.answered", "The request was already \(status.rawValue).", allowed: [])
    }
}

extension UserRequest: Record, JSONObjectWritable {
    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", &id)
        members.member("kind", &kind)
        members.member("fromUserId", &fromUserId)
        members.member("toUserId", &toUserId)
        members.member("fromName", &fromName)
        members.member("aboutId", &aboutId)
        members.member("status", &status)
        members.member("createdAt", &createdAt)
        members.member("answeredAt", &answeredAt)
        members.hidden("seenAt", &seenAt)
    }
}

/// The body of `POST /v1/requests`: `{kind, toUserId, fromUserId?, fromName?, aboutId?}`.
public struct RequestDraft: Sendable, Hashable {
    public let kind: UserRequest.Kind
    public let toUserId: ID<User>
    /// Backends name the requester; users can only ask for themselves.
    public let fromUserId: ID<User>?
    public let fromName: String?
    public let aboutId: String?

    public init(reading fields: inout Fields) {
        kind = fields.word("kind")
        toUserId = fields.id("toUserId")
        fromUserId = fields.optionalID("fromUserId")
        aboutId = fields.optionalID("aboutId", UserRequest.self)?.text
        fromName = fields.optionalLine("fromName", bytesMax: RequestLimits.nameBytesMax)
    }

    /// Returns the requester.
    ///
    /// - Throws: 422 if the requester is ambiguous, and for a request to oneself.
    public func requester(caller: ID<User>, isService: Bool) throws(Failure) -> ID<User> {
        guard let requester = fromUserId ?? (isService ? nil : caller) else {
            throw Failure.invalid("/fromUserId", "is missing: name the sending user")
        }
        guard isService || requester == caller else {
            throw Failure.invalid(
                "/fromUserId", "must be your own user id: only a backend may send requests for other users")
        }
        guard requester != toUserId else { throw Failure.invalid("/toUserId", "must be another user") }
        return requester
    }
}

/// The body of `PATCH /v1/requests/{id}`: `{"status": "accepted"}` or `{"status": "declined"}`.
public enum RequestAnswer: String, CaseIterable, Sendable {
    case accepted, declined

    public init(reading fields: inout Fields) { self = fields.word("status") }

    public var status: UserRequest.Status { self == .accepted ? .accepted : .declined }
}

/// The limits of requests, each with its reason.
public enum RequestLimits {
    /// Open requests of one requester. Without this limit, one user could send a request to every user and light every
    /// badge.
    public static let openMax = 500
    /// Bytes of a name, which appears in a notification's single line.
    public static let nameBytesMax = 80
    /// Requests that one call marks as seen. One event names all of them. A user with more requests calls again.
    public static let seenAtOnceMax = 500
    /// How long answered requests stay stored, for lists.
    public static let answeredRetentionSeconds: Int64 = 90 * 86_400
    /// Items of one page.
    public static let pageMax = 100
}

import Values

/// A competition with a leaderboard.
public struct Challenge: Sendable, Hashable {
    /// How a further score of the same user is combined with the stored one.
    public enum Mode: String, Sendable, CaseIterable, MemberValue {
        /// The score is added (R-CUT-L-1).
        case add
        /// The better score is kept.
        case best
    }

    /// Which scores are better.
    public enum Order: String, Sendable, CaseIterable, MemberValue {
        /// The highest score is first.
        case descending
        /// The lowest score is first, for example times or strokes.
        case ascending
    }

    public var id: ID<Challenge> = ""
    public var name = ""
    /// The shop whose staff manages the challenge; nil if only admins and backends manage it.
    public var shopId: ID<Shop>?
    /// The first moment at which scores count.
    public var startsAt = Timestamp(microseconds: 0)
    /// The first moment at which scores no longer count.
    public var endsAt = Timestamp(microseconds: 0)
    public var mode = Mode.add
    public var order = Order.descending
    public var createdAt = Timestamp(microseconds: 0)
    public var updatedAt = Timestamp(microseconds: 0)

    public init() {}

    public init(
        id: ID<Challenge>, name: String, shopId: ID<Shop>?, startsAt: Timestamp, endsAt: Timestamp, mode: Mode,
        order: Order, createdAt: Timestamp, updatedAt: Timestamp
    ) {
        self.id = id
        self.name = name
        self.shopId = shopId
        self.startsAt = startsAt
        self.endsAt = endsAt
        self.mode = mode
        self.order = order
        self.createdAt = createdAt
        self.updatedAt = updatedAt
    }

    /// Checks that the challenge is running.
    ///
    /// - Throws: 409 `challenge.not_started`, `challenge.ended`.
    public func requireRunning(at now: Timestamp) throws(Failure) {
        if now < startsAt {
            throw Failure(.conflict, "challenge.not_started", "The challenge begins at \(startsAt).")
        }
        if now >= endsAt { throw Failure(.conflict, "challenge.ended", "The challenge has ended at \(endsAt).") }
    }

    /// Returns a user's score after a new one is submitted.
    ///
    /// - Throws: 409 `score.overflow` for a sum beyond 64 bits.
    public func score(_ score: Int64, after present: Int64?) throws(Failure) -> Int64 {
        guard let present else { return score }
        switch mode {
        case .best: return order.key(of: score) < order.key(of: present) ? score : present
        case .add:
            let (sum, isOverflowing) = present.addingReportingOverflow(score)
            guard !isOverflowing else {
                throw Failure(
                    .conflict, "score.overflow", "The sum of the scores would exceed 64 bits.",
                    fields: [Failure.Field("/score", "is too large to add to the current score of \(present)")])
            }
            return sum
        }
    }
}

extension Challenge.Order {
    /// Returns the sort key of a score; smaller keys are better. It is the complement, because the least number has no
    /// negation.
    public func key(of score: Int64) -> Int64 { self == .ascending ? score : ~score }
    public func score(of key: Int64) -> Int64 { self == .ascending ? key : ~key }
}

extension Challenge: Record, JSONObjectWritable {
    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", in: "challenge_id", &id)
        members.member("name", &name)
        members.member("shopId", &shopId)
        members.member("startsAt", &startsAt)
        members.member("endsAt", &endsAt)
        members.member("mode", &mode)
        members.member("order", in: "score_order", &order)
        members.member("createdAt", &createdAt)
        members.member("updatedAt", &updatedAt)
    }
}

/// The body of `PUT /v1/challenges/{id}`: the desired challenge.
public struct ChallengeDraft: Sendable, Hashable {
    public let name: String
    public let shopId: ID<Shop>?
    public let startsAt: Timestamp
    public let endsAt: Timestamp
    public let mode: Challenge.Mode
    public let order: Challenge.Order

    public init(reading fields: inout Fields) {
        name = fields.string("name", bytesMax: LeaderboardLimits.nameBytesMax)
        shopId = fields.optionalID("shopId")
        startsAt = fields.timestamp("startsAt")
        endsAt = fields.timestamp("endsAt")
        mode = fields.word("mode")
        order = fields.optionalWord("order") ?? .descending
        if endsAt.microseconds != 0, endsAt <= startsAt { fields.reject("endsAt", "must be after startsAt") }
    }

    /// Returns the challenge that results from the draft.
    ///
    /// - Parameters:
    ///   - known: The stored challenge, if any.
    ///   - hasScores: Whether scores exist. The meaning of existing scores cannot be changed.
    /// - Throws: 409 `challenge.has_scores`.
    public func challenge(
        _ id: ID<Challenge>, replacing known: Challenge?, hasScores: Bool, at now: Timestamp
    ) throws(Failure) -> Challenge {
        if let known, hasScores, known.mode != mode || known.order != order {
            throw Failure(
                .conflict, "challenge.has_scores",
                "The challenge already has scores, so its mode and order cannot change.")
        }
        return Challenge(
            id: id, name: name, shopId: shopId, startsAt: startsAt, endsAt: endsAt, mode: mode, order: order,
            createdAt: known?.createdAt ?? now, updatedAt: now)
    }
}

/// The body of `POST /v1/challenges/{id}/scores`: a score of a user.
public struct ScoreDraft: Sendable, Hashable {
    /// Nil means the caller.
    public let userId: ID<User>?
    public let score: Int64
    /// Nil leaves the name unchanged.
    public let displayName: String?

    public init(reading fields: inout Fields) {
        userId = fields.optionalID("userId")
        score = Int64(fields.int("score", in: .min ... .max))
        displayName = fields.optionalString("displayName", bytesMax: LeaderboardLimits.displayNameBytesMax)
    }
}

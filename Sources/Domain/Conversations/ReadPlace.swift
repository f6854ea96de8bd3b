import Values

/// A member's read position in a conversation. It gives the unread count without reading any messages.
///
/// Messages are numbered 1, 2, 3 … without gaps; the number of a deleted message is not reused. Among the messages
/// after the read position, the reader's own and the deleted ones are not unread, so their number is stored too:
///
///     unread = last sequence − read position − excluded
///
/// A new message costs one update, for its sender. A deletion costs one update for each member that had the message
/// unread. Reading to the end sets `excluded` to 0. Only a move that stops earlier must know how many of the messages
/// it passed were excluded. An index counts them, each message once per pass, so that reading costs the same in one
/// move as in many (R-CNT-COUNTS-3).
public struct ReadPlace: Sendable, Hashable {
    /// The last sequence number when the member joined. Earlier messages are not unread, and cannot be marked as
    /// unread.
    public let joined: Int
    public private(set) var position: Int
    /// The number of messages after the position that are the reader's own, deleted, or both.
    public private(set) var excluded: Int

    public init(joined: Int, position: Int, excluded: Int) {
        self.joined = joined
        self.position = position
        self.excluded = excluded
    }

    /// Creates the place of a member at the moment of joining.
    public init(joining last: Int) { self.init(joined: last, position: last, excluded: 0) }

    public func unread(of last: Int) -> Int { last - position - excluded }

    /// Returns the position after a change. It is never before the join, and moves backwards only if the change allows
    /// it.
    ///
    /// - Throws: 422 for a sequence number that no message has yet, and for a step back over too many messages.
    public func target(of change: ReadPositionChange, last: Int) throws(Failure) -> Int {
        guard change.sequence <= last else {
            throw Failure.invalid("/sequence", "must be at most \(last), the last sequence of the conversation")
        }
        let wanted = max(change.sequence, joined)
        guard wanted < position else { return wanted }
        guard change.allowsRewind else { return position }
        guard position - wanted <= ConversationLimits.rewindMax else {
            throw Failure.invalid(
                "/sequence", "must be at most \(ConversationLimits.rewindMax) before your read position, \(position)")
        }
        return wanted
    }

    /// Moves the position.
    ///
    /// - Parameter countExcluded: Returns how many of a range of messages are the reader's own or deleted. It is called
    ///   at most once, and never for the usual move, which is to the end.
    public mutating func move(
        to target: Int, last: Int, countExcluded: (ClosedRange<Int>) throws -> Int
    ) rethrows {
        if target == last {
            excluded = 0
        } else if target > position, excluded > 0 {
            excluded -= try countExcluded(position + 1...target)
        } else if target < position {
            excluded += try countExcluded(target + 1...position)
        }
        position = target
    }
}

/// The body of `PUT …/read-position`: `{"sequence": n, "allowRewind": bool}`.
///
/// By default a position only grows, because several devices report theirs in any order. A step back marks messages as
/// unread again and must be requested explicitly.
public struct ReadPositionChange: Sendable, Hashable {
    public let sequence: Int
    public let allowsRewind: Bool

}

extension ReadPositionChange {
    public init(reading fields: inout Fields) {
        sequence = fields.int("sequence", in: 0...(1 << 53))
        allowsRewind = fields.optionalBool("allowRewind") ?? false
    }
}

import Values

/// How far a member has read a conversation, from which the unread count follows without looking at messages.
///
/// Messages are numbered 1, 2, 3 … without gaps; a deleted message's number is not reused. Of those behind the read
/// position, the reader's own and the deleted ones are not unread, so their number is stored beside it:
///
///     unread = last sequence − read position − excluded
///
/// A new message costs nothing here but to its sender; a deletion costs one to each who had it unread; reading to the
/// end makes `excluded` 0. Only a move that stops on the way has to know how many of the messages it passed were
/// excluded: they are counted by an index, each once for a pass, so that reading a message costs the same whether it is
/// done in one move or in many (CNT R-COUNTS-3).
public struct ReadPlace: Sendable, Hashable {
    /// The last sequence when the member joined: earlier messages are not unread, and cannot be marked unread.
    public let joined: Int
    public private(set) var position: Int
    /// The messages behind the position that are the reader's own, or deleted, or both.
    public private(set) var excluded: Int

    public init(joined: Int, position: Int, excluded: Int) {
        self.joined = joined
        self.position = position
        self.excluded = excluded
    }

    /// The place of a member who joins now.
    public init(joining last: Int) { self.init(joined: last, position: last, excluded: 0) }

    public func unread(of last: Int) -> Int { last - position - excluded }

    /// The position to which a change leads: not before joining, and backwards only if the change allows it.
    ///
    /// - Throws: 422 for a sequence that no message has yet, and for a step back over too many.
    public func target(of change: ReadPositionChange, last: Int) throws(Failure) -> Int {
        guard change.sequence <= last else {
            throw Failure.invalid("/sequence", "must be at most \(last), the conversation's last")
        }
        let wanted = max(change.sequence, joined)
        guard wanted < position else { return wanted }
        guard change.allowsRewind else { return position }
        guard position - wanted <= ConversationLimits.rewindMax else {
            throw Failure.invalid(
                "/sequence", "must be at most \(ConversationLimits.rewindMax) before your position, \(position)")
        }
        return wanted
    }

    /// Moves the position.
    ///
    /// - Parameter countExcluded: how many of a range of messages are the reader's own or deleted. Called at most once,
    ///   and never for the usual move: to the end.
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
/// A position only grows, since several devices report theirs in any order; going back marks messages unread again and
/// must be asked for explicitly.
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

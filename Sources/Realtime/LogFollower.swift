/// An entry of a log, numbered in the order of commits.
public protocol LogEntry: Sendable {
    var sequence: Int64 { get }
    /// Whether both are the same event: by all that readers receive, not by the number alone.
    func isSame(as other: Self) -> Bool
}

/// The log as a poll finds it.
public struct LogState<Entry: LogEntry>: Sendable {
    public let newest: Int64
    public let epoch: String
    /// The entry that was asked for; nil if it is not retained.
    public let content: Entry?
    /// Whether the log lies on another server, or another timeline of it, than the one its epoch was made on.
    public let isMoved: Bool

    public init(newest: Int64, epoch: String, content: Entry?, isMoved: Bool) {
        (self.newest, self.epoch, self.content, self.isMoved) = (newest, epoch, content, isMoved)
    }
}

/// The decisions of a replica that follows a log which others write beside it: what is published, when the log is read or
/// polled, and when streams must begin again.
///
/// It does no I/O and asks no clock, so that a simulation can run every order of events. Its owner guards it with a lock,
/// performs what it returns, and reads the log on one thread.
///
/// After a failover the log may have lost entries that were published; their numbers are then given again. Three signs
/// tell so: the server's timeline, a log that ends before an entry that was published, and another entry in its place. The
/// last sign fades, since publishing goes on: so the entry at the head is kept from the first doubt until it is compared.
public struct LogFollower<Entry: LogEntry>: Sendable {
    /// Own entries that wait for others' before them. More, and they are read from the log like the others'.
    private static var waitingMax: Int { 10_000 }
    /// Makes the next poll one that compares the server's timeline, too: after a lost connection.
    private static var longAgo: Duration { .seconds(-1_000_000_000) }

    /// What the owner asks the log for next.
    public struct Question: Sendable {
        public enum Kind: Sendable { case read, poll }
        public let kind: Kind
        /// Everything up to it was published.
        public let head: Int64
        /// The published entry that the log must still have.
        let published: Entry?
        let epoch: String
        /// Whether the time of the poll has come: then the server's timeline is compared, too.
        public let isTimed: Bool

        /// The entry that a poll looks at.
        public var place: Int64 { published?.sequence ?? head }
    }

    public enum PollOutcome: Sendable, Equatable {
        /// - Parameter isCaughtUp: everything that was committed is published.
        case unchanged(isCaughtUp: Bool)
        /// The log has lost entries, or may have: give it another epoch if it still has this one, then poll again.
        case renew(epoch: String)
        /// The log has another epoch: catch up, then call ``LogFollower/adopt(_:answering:)``.
        case adopt
    }

    public struct ReadOutcome: Sendable {
        public var publish: [Entry] = []
        public var isCaughtUp = false
        /// The entries up to this number are gone: catch up, then call ``LogFollower/restart(after:)``.
        public var missed: Int64?
    }

    public private(set) var head: Int64
    public private(set) var epoch: String
    /// Rises when the log is taken for another one. What was appended before and is handed over after it must be read from
    /// the log: it may have been lost.
    public private(set) var term = 0
    private var waiting: [Int64: Entry] = [:]
    private var last: Entry?
    /// The entry at the head when something first contradicted it; kept until it is compared.
    private var doubted: Entry?
    private var isPollWanted = false
    private var isReadWanted = false
    private var polledAt: Duration

    /// - Parameters:
    ///   - head: the newest entry of the log.
    ///   - now: by a clock that is never set back.
    public init(head: Int64, epoch: String, at now: Duration) {
        (self.head, self.epoch, polledAt) = (head, epoch, now)
    }

    /// Whether the log should be looked at without waiting for the time of the poll.
    public var isWoken: Bool { isReadWanted || isPollWanted }

    // MARK: What happens

    /// Takes the entries of a transaction that was committed here, and returns those to publish.
    ///
    /// - Parameter term: the term when they were appended.
    public mutating func committed(_ entries: [Entry], term: Int) -> [Entry] {
        guard term == self.term else {
            isReadWanted = true
            return []
        }
        // The usual case: they are the next ones, and one transaction's numbers have no gaps.
        if waiting.isEmpty, let first = entries.first, first.sequence == head + 1 {
            head += Int64(entries.count)
            last = entries.last
            return entries
        }
        if waiting.count + entries.count > Self.waitingMax { waiting = [:] }
        for entry in entries {
            if entry.sequence > head {
                waiting[entry.sequence] = entry
            } else if let last, entry.sequence == last.sequence, entry.isSame(as: last) {
                continue
            } else {
                // Read from the log before it was handed over here; or its number was given again.
                doubt()
            }
        }
        let next = takeNext()
        // Those before them were committed by others, and can be read.
        if !waiting.isEmpty { isReadWanted = true }
        return next
    }

    /// Another replica has committed.
    ///
    /// - Parameter newest: nil if announcements may have been missed, as when the connection was lost.
    public mutating func announced(_ newest: Int64?) {
        guard let newest else {
            doubt()
            polledAt = Self.longAgo
            return
        }
        if newest > head { isReadWanted = true }
    }

    /// The process has given the log another epoch, in a transaction of its own; no entry was lost.
    public mutating func renewed(_ epoch: String) { self.epoch = epoch }

    private mutating func doubt() {
        if doubted == nil { doubted = last }
        isPollWanted = true
    }

    private mutating func takeNext() -> [Entry] {
        var next: [Entry] = []
        while let entry = waiting.removeValue(forKey: head + 1) {
            head += 1
            next.append(entry)
        }
        if let entry = next.last { last = entry }
        return next
    }

    // MARK: Looking at the log

    /// How long the owner may wait, unless it is woken.
    public func pause(at now: Duration, pollPause: Duration) -> Duration {
        isWoken ? .zero : max(.zero, polledAt + pollPause - now)
    }

    /// Returns what to ask the log for, nil if it is not time. A poll is due by the time that has passed, however much is
    /// announced meanwhile: an epoch comes with no announcement.
    public mutating func nextQuestion(at now: Duration, pollPause: Duration) -> Question? {
        let isTimed = now - polledAt >= pollPause
        if isTimed || isPollWanted {
            if isTimed { polledAt = now }
            defer { (doubted, isPollWanted) = (nil, false) }
            return Question(kind: .poll, head: head, published: doubted ?? last, epoch: epoch, isTimed: isTimed)
        }
        guard isReadWanted else { return nil }
        isReadWanted = false
        return Question(kind: .read, head: head, published: last, epoch: epoch, isTimed: false)
    }

    /// The log could not be asked: the server may be another one when it answers again.
    public mutating func failed(_ question: Question) {
        doubted = question.published ?? doubted
        isPollWanted = true
        polledAt = Self.longAgo
    }

    /// - Parameters:
    ///   - entries: what follows the entry before the question's head, in order.
    ///   - isAll: nothing follows them.
    public mutating func read(_ entries: [Entry], isAll: Bool, answering question: Question) -> ReadOutcome {
        if let published = question.published, let same = entries.first(where: { $0.sequence == published.sequence }),
            !same.isSame(as: published)
        {
            doubted = published
            isPollWanted = true
            return ReadOutcome()
        }
        for entry in entries where entry.sequence > head { waiting[entry.sequence] = entry }
        var outcome = ReadOutcome(publish: takeNext())
        // Numbers have no gaps: one that was not read is not retained any more, since this replica was away longer than
        // the log is retained.
        if let next = entries.first(where: { $0.sequence > head }) {
            outcome.missed = next.sequence - 1
        } else if isAll {
            outcome.isCaughtUp = true
        } else {
            isReadWanted = true
        }
        return outcome
    }

    public mutating func polled(_ state: LogState<Entry>, answering question: Question) -> PollOutcome {
        if state.isMoved { return .renew(epoch: state.epoch) }
        guard question.epoch == epoch else {
            // Renewed by this process while the log was asked.
            isPollWanted = true
            return .unchanged(isCaughtUp: false)
        }
        if state.epoch != epoch { return .adopt }
        var isAnother = false
        if let published = question.published, let content = state.content {
            isAnother = !content.isSame(as: published)
        }
        if isAnother || state.newest < question.head { return .renew(epoch: epoch) }
        if state.newest > head { isReadWanted = true }
        return .unchanged(isCaughtUp: state.newest <= head)
    }

    /// Goes on behind the newest entry of a log with another epoch. All streams begin again.
    ///
    /// - Returns: whether it did; false where this process has given it an epoch meanwhile.
    public mutating func adopt(_ state: LogState<Entry>, answering question: Question) -> Bool {
        guard question.epoch == epoch else {
            isPollWanted = true
            return false
        }
        epoch = state.epoch
        term += 1
        // What waits may have been lost: it is read.
        waiting = [:]
        restart(after: state.newest)
        return true
    }

    /// Goes on behind an entry. All streams begin again.
    public mutating func restart(after sequence: Int64) {
        head = sequence
        (last, doubted) = (nil, nil)
        waiting = waiting.filter { $0.key > sequence }
        isReadWanted = true
    }

    /// Returns what waits and follows the head: for after a restart, once streams have begun again.
    public mutating func publishable() -> [Entry] { takeNext() }
}

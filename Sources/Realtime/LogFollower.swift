/// An entry of a log, numbered in commit order.
public protocol LogEntry: Sendable {
    var sequence: Int64 { get }
    /// Whether both are the same event. This compares everything that readers receive, not the number alone.
    func isSame(as other: Self) -> Bool
    /// Whether the content was removed from the log, so that only the number is left.
    var isErased: Bool { get }
}

/// The state of the log that a poll finds.
public struct LogState<Entry: LogEntry>: Sendable {
    public let newest: Int64
    public let epoch: String
    /// The requested entry; nil if it is not retained.
    public let content: Entry?
    /// Whether the log is on another server, or on another timeline of it, than the one for which its epoch was
    /// created.
    public let isMoved: Bool

    public init(newest: Int64, epoch: String, content: Entry?, isMoved: Bool) {
        (self.newest, self.epoch, self.content, self.isMoved) = (newest, epoch, content, isMoved)
    }
}

/// The decisions of a replica that follows a log to which other replicas also write. It decides which entries to
/// publish, when to read or poll the log, and when streams must restart.
///
/// It does no I/O and reads no clock, so that a simulation can run every order of events. Its owner guards it with a
/// lock, performs the returned actions, and reads the log on one thread.
///
/// After a failover, the log may have lost entries that were already published, and their numbers are assigned again.
/// Three signs reveal this: another server timeline, a log that ends before a published entry, and a different entry
/// with the same number. The last sign disappears as publishing continues. Therefore the entry at the head is kept from
/// the first doubt until it is compared.
///
/// Entries may be erased from the log some time after they were committed. A replica that was behind for so long finds
/// erased entries above its head, and treats them as a gap: it catches up, and its streams restart. Nor does it publish
/// from its own memory what may have been erased meanwhile (``memoryMax``).
public struct LogFollower<Entry: LogEntry>: Sendable {
    /// Own entries that may wait for other replicas' entries before them. Above this number they are read from the log
    /// like the others' entries.
    private static var waitingMax: Int { 10_000 }
    /// Makes the next poll also compare the server's timeline, after a lost connection.
    private static var longAgo: Duration { .seconds(-1_000_000_000) }
    /// How long entries may be published from memory after the log was last read to its end. Entries are erased later
    /// than that after their commit, so a published entry is still in the log. A process that was suspended for longer
    /// reads the log first.
    public static var memoryMax: Duration { .seconds(5) }

    /// The next question of the owner to the log.
    public struct Request: Sendable {
        public enum Kind: Sendable { case read, poll }
        public let kind: Kind
        /// All entries up to this number were published.
        public let head: Int64
        /// The published entry that the log must still contain.
        let published: Entry?
        let epoch: String
        /// Whether this poll is due by time. Then the server's timeline is compared too.
        public let isTimed: Bool
        /// When it was asked. The answer shows the log at that time or later.
        let askedAt: Duration

        /// The number of the entry that a poll reads.
        public var place: Int64 { published?.sequence ?? head }
    }

    public enum PollOutcome: Sendable, Equatable {
        /// The log is unchanged.
        ///
        /// - Parameter isCaughtUp: Whether all committed entries are published.
        case unchanged(isCaughtUp: Bool)
        /// The log has lost entries, or may have. Give it a new epoch if it still has this one, then poll again.
        case renew(epoch: String)
        /// The log has another epoch. Catch up, then call ``LogFollower/adopt(_:answering:)``.
        case adopt
    }

    public struct ReadOutcome: Sendable {
        public var publish: [Entry] = []
        public var isCaughtUp = false
        /// Entries up to this number are gone or erased. Catch up, then call ``LogFollower/restart(after:)``.
        public var missed: Int64?
    }

    public private(set) var head: Int64
    public private(set) var epoch: String
    /// The term, which rises when the log is considered replaced. Entries that were appended in an earlier term must be
    /// read from the log, because they may have been lost.
    public private(set) var term = 0
    private var waiting: [Int64: Entry] = [:]
    private var last: Entry?
    /// The entry at the head when the first contradiction appeared, kept until it is compared.
    private var doubted: Entry?
    private var isPollWanted = false
    private var isReadWanted = false
    private var polledAt: Duration
    /// Everything that was committed until then is published.
    public private(set) var caughtUpAt: Duration

    /// Creates a follower.
    ///
    /// - Parameters:
    ///   - head: The newest entry of the log.
    ///   - isAlone: Whether no other process writes to the log, so that it is never read.
    ///   - now: The time of a monotonic clock that also runs while the process is suspended.
    public init(head: Int64, epoch: String, isAlone: Bool = false, at now: Duration) {
        (self.head, self.epoch, polledAt) = (head, epoch, now)
        caughtUpAt = isAlone ? .seconds(1_000_000_000_000) : now
    }

    /// Whether the log should be read or polled now, without waiting for the next poll.
    public var isWoken: Bool { isReadWanted || isPollWanted }

    // MARK: Events

    /// Takes the entries of a transaction that was committed here, and returns the entries to publish.
    ///
    /// - Parameter term: The term in which they were appended.
    public mutating func committed(_ entries: [Entry], term: Int, at now: Duration) -> [Entry] {
        forgetOld(at: now)
        guard term == self.term, !isOld(at: now) else {
            isReadWanted = true
            return []
        }
        // The usual case: they are the next entries, and the numbers of one transaction have no gaps.
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
                // The entry was read from the log before it was handed over here, or its number was assigned again.
                doubt()
            }
        }
        let next = takeNext()
        // The entries before them were committed by other replicas, and can be read.
        if !waiting.isEmpty { isReadWanted = true }
        return next
    }

    /// Records that another replica has committed. Own commits are not announced; if one is not handed over either, the
    /// next poll finds its entries.
    ///
    /// - Parameter newest: Nil if announcements may have been missed, for example after a lost connection.
    public mutating func announced(_ newest: Int64?) {
        guard let newest else {
            doubt()
            polledAt = Self.longAgo
            return
        }
        if newest > head { isReadWanted = true }
    }

    /// Records that this process has given the log a new epoch in a separate transaction. No entry was lost.
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

    // MARK: Reading the log

    /// Returns how long the owner may wait unless it is woken.
    public func pause(at now: Duration, pollPause: Duration) -> Duration {
        isWoken ? .zero : max(.zero, polledAt + pollPause - now)
    }

    /// Returns the next question to the log, or nil if it is not due. A poll is due by elapsed time, regardless of
    /// announcements, because a new epoch comes without one.
    public mutating func nextRequest(at now: Duration, pollPause: Duration) -> Request? {
        forgetOld(at: now)
        let isTimed = now - polledAt >= pollPause
        if isTimed || isPollWanted {
            if isTimed { polledAt = now }
            defer { (doubted, isPollWanted) = (nil, false) }
            return Request(
                kind: .poll, head: head, published: doubted ?? last, epoch: epoch, isTimed: isTimed, askedAt: now)
        }
        guard isReadWanted else { return nil }
        isReadWanted = false
        return Request(kind: .read, head: head, published: last, epoch: epoch, isTimed: false, askedAt: now)
    }

    /// Records that the log could not be read. When it answers again, it may be on another server.
    public mutating func failed(_ request: Request) {
        doubted = request.published ?? doubted
        isPollWanted = true
        polledAt = Self.longAgo
    }

    /// Takes the entries that were read.
    ///
    /// - Parameters:
    ///   - entries: The entries after the question's head, in order.
    ///   - isAll: Whether the log ends with them.
    public mutating func read(
        _ entries: [Entry], isAll: Bool, answering request: Request, at now: Duration
    ) -> ReadOutcome {
        guard now - request.askedAt <= Self.memoryMax else {
            isReadWanted = true
            return ReadOutcome()
        }
        if let published = request.published, let same = entries.first(where: { $0.sequence == published.sequence }),
            Self.differ(same, published)
        {
            doubted = published
            isPollWanted = true
            return ReadOutcome()
        }
        let next = entries.filter { $0.sequence > head }
        // Streams resume before an erased entry, and learn whether it concerned them.
        if let erased = next.last(where: \.isErased) {
            for entry in next where entry.sequence > erased.sequence { waiting[entry.sequence] = entry }
            return ReadOutcome(missed: erased.sequence)
        }
        for entry in next { waiting[entry.sequence] = entry }
        var outcome = ReadOutcome(publish: takeNext())
        // Numbers have no gaps. A number that was not read is no longer retained, because this replica was away for
        // longer than the retention of the log.
        if let next = next.first(where: { $0.sequence > head }) {
            outcome.missed = next.sequence - 1
        } else if isAll {
            outcome.isCaughtUp = true
            caughtUpAt = max(caughtUpAt, request.askedAt)
        } else {
            isReadWanted = true
        }
        return outcome
    }

    /// Whether an entry of the log is another one than the one that was published. An erased entry may be the same.
    private static func differ(_ entry: Entry, _ published: Entry) -> Bool {
        !entry.isErased && !entry.isSame(as: published)
    }

    public mutating func polled(_ state: LogState<Entry>, answering request: Request) -> PollOutcome {
        if state.isMoved { return .renew(epoch: state.epoch) }
        guard request.epoch == epoch else {
            // This process renewed the epoch during the read.
            isPollWanted = true
            return .unchanged(isCaughtUp: false)
        }
        if state.epoch != epoch { return .adopt }
        var isDifferent = false
        if let published = request.published, let content = state.content {
            isDifferent = Self.differ(content, published)
        }
        if isDifferent || state.newest < request.head { return .renew(epoch: epoch) }
        let isCaughtUp = state.newest <= head
        if isCaughtUp { caughtUpAt = max(caughtUpAt, request.askedAt) } else { isReadWanted = true }
        return .unchanged(isCaughtUp: isCaughtUp)
    }

    /// Continues after the newest entry of a log with another epoch. All streams restart.
    ///
    /// - Returns: Whether it did; false if this process gave the log a new epoch meanwhile.
    public mutating func adopt(_ state: LogState<Entry>, answering request: Request) -> Bool {
        guard request.epoch == epoch else {
            isPollWanted = true
            return false
        }
        epoch = state.epoch
        term += 1
        // The waiting entries may have been lost, so they are read from the log.
        waiting = [:]
        restart(after: state.newest)
        return true
    }

    /// Continues after an entry. All streams restart.
    public mutating func restart(after sequence: Int64) {
        head = sequence
        (last, doubted) = (nil, nil)
        waiting = waiting.filter { $0.key > sequence }
        isReadWanted = true
    }

    /// Returns the waiting entries that follow the head, for publishing after the streams have restarted.
    public mutating func publishable(at now: Duration) -> [Entry] {
        forgetOld(at: now)
        return takeNext()
    }

    private func isOld(at now: Duration) -> Bool { now - caughtUpAt > Self.memoryMax }

    /// Makes waiting entries be read from the log if they may have been erased from it.
    private mutating func forgetOld(at now: Duration) {
        if isOld(at: now), !waiting.isEmpty { (waiting, isReadWanted) = ([:], true) }
    }
}

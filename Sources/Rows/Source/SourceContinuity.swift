/// The origin of a slot's log: the server, its database, and the timeline; each promotion starts a new timeline.
public struct SourceIdentity: Sendable, Hashable, CustomStringConvertible {
    private let log: String
    private let timeline: String

    public init(system: String, database: String, timeline: String) {
        (log, self.timeline) = ("\(system)/\(database)", timeline)
    }

    /// The form that is stored with a position: `system/database#timeline`.
    public var description: String { "\(log)#\(timeline)" }

    func isSame(as stored: String) -> Bool { stored == description }

    func isSameLog(as stored: String) -> Bool { stored.hasPrefix("\(log)#") }
}

/// Whether an app's log can be resumed from the stored position without missing rows.
public enum SourceContinuity: Sendable, Hashable {
    /// The slot delivers everything behind the position.
    case resumes
    /// Nothing was read yet: the slot is created, and tables with memberships are read.
    case begins
    /// Rows may have been missed: the slot is recreated, tables are read again, and all streams resync.
    case lost(Loss)

    public enum Loss: String, Sendable, Hashable, CaseIterable {
        case otherLog = "the log belongs to another server or database"
        case otherTimeline = "another server took over, so rows may be missing or may have been skipped"
        case interrupted = "the process that created the slot ended before it stored the slot's start position"
        case noSlot = "the replication slot no longer exists"
        case overfull = "max_slot_wal_keep_size was exceeded"
        case slotMadeAgain = "the slot was recreated by another user or program"
        case unpublished =
            "the publication or a table in it was recreated, so rows in between were not published"
        case endsEarlier = "the server's log ends before the stored position: an earlier state was restored"
    }

    /// The slot's state on the server.
    public struct Slot: Sendable {
        /// Whether the server has removed log that it had to retain.
        public let isLost: Bool
        /// Everything before it was confirmed by a reader, or precedes the creation of the slot.
        public let confirmed: LSN?

        public init(isLost: Bool, confirmed: LSN?) { (self.isLost, self.confirmed) = (isLost, confirmed) }
    }

    /// The stored position.
    public enum Position: Sendable {
        case none
        /// A slot was about to be created.
        ///
        /// - Parameter isFirst: Whether no position was stored yet.
        case making(isFirst: Bool)
        /// Everything before `lsn` was read from the log of `source`.
        ///
        /// - Parameter wasPublished: Whether all rows after it are published.
        case read(source: String, lsn: LSN, wasPublished: Bool = true)
    }

    /// - Parameter end: The end of the server's log, queried after the position was read. Other replicas keep reading,
    ///   so an earlier query could return an end before the position.
    public init(_ position: Position, _ slot: Slot?, of identity: SourceIdentity, end: LSN) {
        switch position {
        case .none, .making(isFirst: true): self = .begins
        case .making(isFirst: false): self = .lost(.interrupted)
        case .read(let source, let lsn, let wasPublished):
            if let loss = Self.loss(source: source, lsn: lsn, slot: slot, identity, end) {
                self = .lost(loss)
            } else if !wasPublished {
                self = .lost(.unpublished)
            } else {
                self = .resumes
            }
        }
    }

    private static func loss(
        source: String, lsn: LSN, slot: Slot?, _ identity: SourceIdentity, _ end: LSN
    ) -> Loss? {
        guard identity.isSame(as: source) else { return identity.isSameLog(as: source) ? .otherTimeline : .otherLog }
        guard let slot else { return .noSlot }
        if slot.isLost { return .overfull }
        if lsn > end { return .endsEarlier }
        guard let confirmed = slot.confirmed, confirmed <= lsn else { return .slotMadeAgain }
        return nil
    }
}

/// A place in the event log, as clients carry it: `<epoch>-<sequence>`, the `id` of every event.
///
/// The epoch names one log: a database that was made anew counts from 1 again, and without the epoch an old id would
/// silently mean another event. At most 64 bytes of `[A-Za-z0-9-]`, because browsers preflight a longer or stranger
/// `Last-Event-ID`.
public struct Cursor: Sendable, Hashable {
    public let epoch: String
    public let sequence: Int64

    /// Longest epoch: with a hyphen and 19 digits the text stays within ``textBytesMax``.
    static let epochBytesMax = 44
    public static let textBytesMax = 64

    public init(epoch: String, sequence: Int64) {
        precondition(Cursor.isEpoch(epoch.utf8[...]), "an epoch has 1 to 44 letters and digits")
        precondition(sequence >= 0, "sequences start at 0, before the first event")
        self.epoch = epoch
        self.sequence = sequence
    }

    /// Nil for anything that this service cannot have written. What is refused here is answered with
    /// `stream:resync`, never with an error: a client with a strange cursor still gets its stream.
    public init?(_ text: String) {
        let bytes = text.utf8
        guard bytes.count <= Cursor.textBytesMax, let hyphen = bytes.lastIndex(of: UInt8(ascii: "-"))
        else { return nil }
        let digits = bytes[bytes.index(after: hyphen)...]
        guard Cursor.isEpoch(bytes[..<hyphen]), digits.allSatisfy({ (48...57).contains($0) }),
            digits.first != UInt8(ascii: "0") || digits.count == 1, let sequence = Int64(Substring(digits))
        else { return nil }
        self.epoch = String(text[..<hyphen])
        self.sequence = sequence
    }

    public var text: String { "\(epoch)-\(sequence)" }

    /// Whether a text can serve as an epoch; the log checks its own with this.
    static func isEpoch(_ bytes: Substring.UTF8View) -> Bool {
        !bytes.isEmpty && bytes.count <= epochBytesMax
            && bytes.allSatisfy { byte in
                (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
            }
    }
}

/// Why a client must fetch everything again (`stream:resync`): events that it asked for, or should have received, are
/// not coming.
public enum ResyncReason: String, Sendable, Hashable, CaseIterable {
    /// The cursor lies before the oldest stored event, too far back to replay, or is no cursor at all.
    case gap
    /// The cursor belongs to another log.
    case epoch
    /// The client read too slowly, and what waited for it was discarded.
    case overflow
}

/// What a new stream starts with, decided from the client's cursor and the log's bounds.
public enum Resumption: Sendable, Hashable {
    /// No cursor: nothing is replayed.
    case fresh
    /// Everything the stream may see after this sequence.
    case after(Int64)
    case resync(ResyncReason)

    /// - Parameters:
    ///   - oldest: the oldest sequence that the log still stores; a cursor right before it has missed nothing.
    ///   - newest: the newest committed sequence of the log (not of one shard: a client may come from a shard that was
    ///     ahead of this one).
    public static func decide(lastEventID: String?, epoch: String, oldest: Int64, newest: Int64) -> Resumption {
        // An empty id is what a client sends after a server reset it: the same as none.
        guard let lastEventID, !lastEventID.isEmpty else { return .fresh }
        guard let cursor = Cursor(lastEventID) else { return .resync(.gap) }
        guard cursor.epoch == epoch else { return .resync(.epoch) }
        guard cursor.sequence <= newest, cursor.sequence >= oldest - 1 else { return .resync(.gap) }
        return .after(cursor.sequence)
    }
}

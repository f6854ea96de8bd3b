import Values

/// A place in the event log, as clients carry it: `<epoch>-<13 digits>`, the `id` of every event.
///
/// The epoch names one log: a database that was made anew counts from 1 again, and without the epoch an old id would
/// silently mean another event. What follows it is the event's number, of which only ``EventIDs`` can make it and which
/// only it can read: numbers are given to the events of all tenants, and who could read two would know how many there
/// were between them. At most 64 bytes of `[A-Za-z0-9-]`, because browsers preflight a longer or stranger
/// `Last-Event-ID`.
public struct Cursor: Sendable, Hashable {
    public let epoch: String
    let number: OpaqueID

    /// Longest epoch: with a hyphen and the digits the text stays within ``textBytesMax``.
    static let epochBytesMax = 44
    public static let textBytesMax = 64

    fileprivate init(epoch: String, number: OpaqueID) {
        self.epoch = epoch
        self.number = number
    }

    /// Nil for anything that this service cannot have written. What is refused here is answered with
    /// `stream:resync`, never with an error: a client with a strange cursor still gets its stream.
    public init?(_ text: String) {
        let bytes = text.utf8
        guard bytes.count <= Cursor.textBytesMax, let hyphen = bytes.lastIndex(of: UInt8(ascii: "-")),
            let number = OpaqueID(bytes[bytes.index(after: hyphen)...]), Cursor.isEpoch(bytes[..<hyphen])
        else { return nil }
        self.init(epoch: String(text[..<hyphen]), number: number)
    }

    public var text: String { "\(epoch)-\(number.text)" }

    public func append(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: epoch.utf8)
        bytes.append(UInt8(ascii: "-"))
        number.append(to: &bytes)
    }

    /// Whether a text can serve as an epoch; the log checks its own with this.
    static func isEpoch(_ bytes: Substring.UTF8View) -> Bool {
        !bytes.isEmpty && bytes.count <= epochBytesMax && bytes.allSatisfy(\.isAlphanumeric)
    }
}

/// Makes and reads the ids of one log's events.
public struct EventIDs: Sendable {
    public let epoch: String
    private let permutation: KeyedPermutation

    /// No log gets so far: a million events a second take nine years. So an id that somebody has made up is nearly always
    /// recognized without asking the log.
    private static let sequenceMax: UInt64 = 1 << 48

    /// - Parameter key: 16 bytes that belong to this epoch, the same on every replica.
    public init(epoch: String, key: [UInt8]) {
        precondition(Cursor.isEpoch(epoch.utf8[...]), "an epoch has 1 to 44 letters and digits")
        self.epoch = epoch
        permutation = KeyedPermutation(key: key)
    }

    public func cursor(_ sequence: Int64) -> Cursor {
        precondition(sequence >= 0, "sequences start at 0, before the first event")
        return Cursor(epoch: epoch, number: permutation.seal(UInt64(sequence)))
    }

    /// Nil for a cursor of another log, and for one that was not made here.
    public func sequence(of cursor: Cursor) -> Int64? {
        guard cursor.epoch == epoch else { return nil }
        let number = permutation.open(cursor.number)
        return number < EventIDs.sequenceMax ? Int64(number) : nil
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
    public static func decide(lastEventID: String?, ids: EventIDs, oldest: Int64, newest: Int64) -> Resumption {
        // An empty id is what a client sends after a server reset it: the same as none.
        guard let lastEventID, !lastEventID.isEmpty else { return .fresh }
        guard let cursor = Cursor(lastEventID) else { return .resync(.gap) }
        guard cursor.epoch == ids.epoch else { return .resync(.epoch) }
        guard let sequence = ids.sequence(of: cursor), sequence <= newest, sequence >= oldest - 1 else {
            return .resync(.gap)
        }
        return .after(sequence)
    }
}

import Values

/// A position in the event log, as clients carry it: `<epoch>-<13 digits>`, the `id` of every event.
///
/// The epoch names one log. A database that is created again counts from 1 again; without the epoch, an old id would
/// silently refer to a different event. The digits encode the event's number, which only ``EventIDs`` can write and
/// read. Events of all tenants share one numbering, so a client that could read two numbers would learn how many events
/// lie between them. A cursor has at most 64 bytes of `[A-Za-z0-9-]`, because browsers preflight a longer or different
/// `Last-Event-ID`.
public struct Cursor: Sendable, Hashable {
    public let epoch: String
    let number: OpaqueID

    /// The longest epoch. With a hyphen and the digits, the text stays within ``textBytesMax``.
    static let epochBytesMax = 44
    public static let textBytesMax = 64

    fileprivate init(epoch: String, number: OpaqueID) {
        self.epoch = epoch
        self.number = number
    }

    /// Reads a cursor; nil for any text that this service cannot have written. The service answers such a text with
    /// `stream:resync`, never with an error, so a client with a foreign cursor still gets its stream.
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

    /// Whether a text can serve as an epoch. The log checks its own epoch with this.
    static func isEpoch(_ bytes: Substring.UTF8View) -> Bool {
        !bytes.isEmpty && bytes.count <= epochBytesMax && bytes.allSatisfy(\.isAlphanumeric)
    }
}

/// The encoder and decoder of one log's event ids.
public struct EventIDs: Sendable {
    public let epoch: String
    private let permutation: KeyedPermutation

    /// The bound of event numbers. At a million events a second, a log reaches it after nine years. So a made-up id is
    /// nearly always recognized without reading the log.
    private static let sequenceMax: UInt64 = 1 << 48

    /// Creates the encoder of a log.
    ///
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

    /// Returns the event number of a cursor; nil for a cursor of another log, and for one that this log did not write.
    public func sequence(of cursor: Cursor) -> Int64? {
        guard cursor.epoch == epoch else { return nil }
        let number = permutation.open(cursor.number)
        return number < EventIDs.sequenceMax ? Int64(number) : nil
    }
}

/// The reason why a client must fetch everything again (`stream:resync`): some events that it asked for, or should have
/// received, will not be delivered.
public enum ResyncReason: String, Sendable, Hashable, CaseIterable {
    /// The cursor is before the oldest stored event, too far back to replay, or malformed.
    case gap
    /// The cursor belongs to another log.
    case epoch
    /// The client read too slowly, and its backlog was discarded.
    case overflow
}

/// How a new stream starts, decided from the client's cursor and the bounds of the log.
public enum Resumption: Sendable, Hashable {
    /// No cursor: nothing is replayed.
    case fresh
    /// Replays the events after this sequence that the stream may see.
    case after(Int64)
    case resync(ResyncReason)

    /// Decides how a stream starts.
    ///
    /// - Parameters:
    ///   - oldest: The oldest sequence that the log still stores. A cursor right before it has missed nothing.
    ///   - newest: The newest committed sequence of the log. It is not that of one shard, because a client may come
    ///     from a shard that was ahead of this one.
    public static func decide(lastEventID: String?, ids: EventIDs, oldest: Int64, newest: Int64) -> Resumption {
        // A client sends an empty id after a server reset it. It means the same as no id.
        guard let lastEventID, !lastEventID.isEmpty else { return .fresh }
        guard let cursor = Cursor(lastEventID) else { return .resync(.gap) }
        guard cursor.epoch == ids.epoch else { return .resync(.epoch) }
        guard let sequence = ids.sequence(of: cursor), sequence <= newest, sequence >= oldest - 1 else {
            return .resync(.gap)
        }
        return .after(sequence)
    }
}

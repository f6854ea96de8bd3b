import Database
import Values

/// Events of one transaction with the same readers: one row of the log, with one route for each of their keys.
///
/// The row is that of the last event. The earlier ones are in its column `earlier`, oldest first. Each consists of its
/// sign, its number, its collapse key, its name, the size of its data and the data: `+17 0 message:created 57 {…}`. The
/// sign is `+` if the shared members come before the data. The last event's sign ends the column.
struct EventRecord {
    /// The keys of the readers, in stored form.
    let audience: String
    /// The number of the first event.
    let first: Int64
    /// The number of the last event.
    private(set) var sequence: Int64
    /// The index of the last event among the drafts of its transaction.
    private(set) var place: Int
    /// The shared members, for its events with the sign `+`.
    private(set) var shared: SharedMembers?
    /// Empty if there is one event.
    private(set) var earlier: [UInt8] = []

    /// Returns the records of a transaction's events, each at the index of its last event.
    ///
    /// Other events may lie between two events of a record: a transaction that notifies several users publishes their
    /// counts at its end.
    static func records(of drafts: [EventDraft], after start: Int64) -> [EventRecord?] {
        var records: [EventRecord?] = []
        records.reserveCapacity(drafts.count)
        var latest: [ID<EventRecord>: Int] = [:]
        for place in drafts.indices {
            let sequence = start + Int64(place) + 1
            var before: Int?
            if drafts[place].isCombinable {
                // A few drafts are compared with one another; more are looked up.
                before =
                    drafts.count <= comparedMax
                    ? records.indices.last { records[$0] != nil && drafts[$0].hasReaders(of: drafts[place]) }
                    : latest.updateValue(place, forKey: drafts[place].readers)
            }
            if let before, records[before]?.admits(drafts[place], as: sequence, behind: drafts[before]) == true {
                records.append(records[before].take())
                records[place]?.add(drafts[place], as: sequence, at: place, behind: drafts[before])
            } else {
                records.append(
                    EventRecord(
                        audience: drafts[place].audienceText, first: sequence, sequence: sequence, place: place,
                        shared: drafts[place].shared))
            }
        }
        return records
    }

    /// Above this number, comparing each event with all before it costs more than hashing its readers.
    private static let comparedMax = 8

    private func admits(_ draft: EventDraft, as sequence: Int64, behind last: EventDraft) -> Bool {
        last.hasReaders(of: draft) && sequence - first < Int64(Limits.recordSpanMax)
            && (shared == nil || draft.shared == nil || shared === draft.shared)
    }

    private mutating func add(_ draft: EventDraft, as sequence: Int64, at place: Int, behind last: EventDraft) {
        if earlier.isEmpty {
            earlier.reserveCapacity(last.data.count + Self.headBytes)
            earlier.append(Self.sign(of: last))
        }
        append("\(self.sequence)")
        append("\(last.collapseKey)")
        append(last.name)
        append("\(last.data.count)")
        earlier += last.data
        earlier.append(Self.sign(of: draft))
        (self.sequence, self.place) = (sequence, place)
        shared = shared ?? draft.shared
    }

    private mutating func append(_ field: String) {
        field.withUTF8Bytes { earlier.append(contentsOf: $0) }
        earlier.append(Self.space)
    }

    private static func sign(of draft: EventDraft) -> UInt8 { draft.shared == nil ? isAlone : isSharing }

    fileprivate static let isSharing = UInt8(ascii: "+")
    fileprivate static let isAlone = UInt8(ascii: "-")
    fileprivate static let space = UInt8(ascii: " ")
    /// The approximate size of the text before an event's data.
    private static let headBytes = 48
}

extension EventDraft {
    /// Whether the event can share a record. Row changes are found and read one by one, and events without an audience
    /// belong to replicas.
    fileprivate var isCombinable: Bool { change == nil && !audience.isEmpty }

    /// Keys are ASCII, so equal texts have equal bytes.
    fileprivate func hasReaders(of other: EventDraft) -> Bool {
        isCombinable && audience == other.audience && topic.hasBytes(of: other.topic) && tenant == other.tenant
    }

    /// The audience and the topic in one text; no key contains a line feed.
    fileprivate var readers: ID<EventRecord> { ID(topic.map { "\(audienceText)\n\($0)" } ?? audienceText) }

    fileprivate var audienceText: String { audience.count == 1 ? audience[0] : audience.joined(separator: " ") }
}

/// The events of a record before its last one.
struct EarlierEvents {
    struct Event {
        let sequence: Int64
        let collapse: UInt64
        let name: String
        let isSharing: Bool
        let data: ArraySlice<UInt8>

        /// The event without its content.
        var erased: Event {
            Event(
                sequence: sequence, collapse: 0, name: EventLog.erasedName, isSharing: false,
                data: EncodedJSON.emptyObject.bytes[...])
        }
    }

    private let bytes: [UInt8]
    private var index = 0

    /// Reads the column `earlier`.
    ///
    /// - Parameter column: Nil if the record has one event.
    init(_ column: [UInt8]?) {
        // A single event with shared members uses all of them.
        bytes = column ?? [EventRecord.isSharing]
    }

    /// Whether the shared members come before the data of the record's last event.
    var isLastShared: Bool { bytes.last == EventRecord.isSharing }

    /// Returns the next event.
    ///
    /// - Returns: Nil after the last of them.
    mutating func next() throws -> Event? {
        guard index + 1 < bytes.count else { return nil }
        let isSharing = bytes[index] == EventRecord.isSharing
        index += 1
        let (sequence, collapse, name, length) = (Int64(field()), UInt64(field()), field(), Int(field()))
        guard let sequence, let collapse, let length, length >= 0, length < bytes.count - index else {
            throw DatabaseError(.corrupt, "a record of the log cannot be read")
        }
        defer { index += length }
        return Event(
            sequence: sequence, collapse: collapse, name: name, isSharing: isSharing,
            data: bytes[index..<index + length])
    }

    /// Writes the column again.
    ///
    /// - Parameter isLastShared: see ``isLastShared``
    static func column(_ events: [Event], isLastShared: Bool) -> [UInt8] {
        var bytes: [UInt8] = []
        for event in events {
            bytes.append(event.isSharing ? EventRecord.isSharing : EventRecord.isAlone)
            bytes += Array("\(event.sequence) \(event.collapse) \(event.name) \(event.data.count) ".utf8)
            bytes += event.data
        }
        bytes.append(isLastShared ? EventRecord.isSharing : EventRecord.isAlone)
        return bytes
    }

    private mutating func field() -> String {
        let end = bytes[index...].firstIndex(of: EventRecord.space) ?? bytes.count
        defer { index = min(end + 1, bytes.count) }
        return String(decoding: bytes[index..<end], as: UTF8.self)
    }
}

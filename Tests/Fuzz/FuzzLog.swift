import Rows
import Values

/// An app's own types, by their numbers, in addition to PostgreSQL's built-in types.
private let ownTypes: [UInt32: SourceType] = [
    16400: .composite([
        .init(name: "a", type: .json), .init(name: "b", type: .array(of: .text, delimiter: 44)),
        .init(name: "c", type: .timestampWithZone),
    ]),
    16401: .array(of: .composite([.init(name: "n", type: .number)]), delimiter: 59),
]

/// Reads data as an app's PostgreSQL sends it. The first byte selects the form: messages of a log, each after two bytes
/// of length; a frame of the stream; or a line of COPY.
let readLog: FuzzTarget = { input in
    guard let choice = input.first else { return }
    let rest = input.dropFirst()
    switch choice {
    case UInt8(ascii: "f"): readFrame(Array(rest))
    case UInt8(ascii: "c"): readLine(rest)
    default: readMessages(rest)
    }
}

private func readFrame(_ bytes: [UInt8]) {
    do {
        if case .data(_, let message) = try ReplicationFrame(reading: bytes) {
            require(message.count == bytes.count - 25, "a frame's message is not what follows its head")
        }
    } catch {
        require(error.place <= bytes.count, "a fault behind the end")
    }
}

private func readLine(_ line: ArraySlice<UInt8>) {
    let types: [UInt32] = [16, 23, 1700, 25, 1114, 1184, 114, 3802, 1009, 199, 22, 16400, 16401]
    for (count, type) in types.enumerated() {
        let columns = (0...count).map { SourceRelation.Column(name: "c\($0)", isOfOldRows: true, type: type) }
        let rows = SourceRows(SourceRelation(id: 1, schema: "s", name: "t", columns: columns), types: ownTypes)
        if let change = try? rows.snapshot(ofLine: line) { check(change) }
    }
}

private func readMessages(_ bytes: ArraySlice<UInt8>) {
    var relations: [UInt32: SourceRows] = [:]
    var rest = bytes
    while rest.count > 2 {
        let length = Int(rest[rest.startIndex]) << 8 | Int(rest[rest.startIndex + 1])
        let message = rest.dropFirst(2).prefix(length)
        rest = rest[message.endIndex...]
        do {
            switch try ReplicationMessage(reading: message) {
            case .relation(let relation): relations[relation.id] = SourceRows(relation, types: ownTypes)
            case .insert(let relation, let new): change(relations[relation], .insert, nil, new)
            case .update(let relation, let old, let new): change(relations[relation], .update, old, new)
            case .delete(let relation, let old): change(relations[relation], .delete, old, nil)
            default: break
            }
        } catch {
            require(error.place <= message.count, "a fault behind the end")
        }
    }
}

private func change(_ rows: SourceRows?, _ kind: TableChange.Kind, _ old: SourceTuple?, _ new: SourceTuple?) {
    if let change = try? rows?.change(kind, old: old, new: new, committedAt: nil) { check(change) }
}

private func check(_ change: TableChange) {
    for case let row? in [change.record, change.oldRecord] {
        // Rows are stored as JSON and read again with the reader's own bounds.
        let bytes = JSONWriter.bytes(JSONValue.object(row))
        require((try? JSONValue(parsing: bytes)) != nil, "a row that cannot be read again")
    }
}

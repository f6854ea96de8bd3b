import Rows
import Values

/// Reads a delivery of table changes. The last byte of the input chooses the headers, where a newline means no
/// headers; the rest is the body.
let readDelivery: FuzzTarget = { input in
    guard let last = input.last else { return }
    let choice = last &- 0x0A
    var delivery = ChangeDelivery()
    let types = [
        nil, "application/json", "application/cloudevents+json", "application/cloudevents-batch+json", "text/plain",
    ]
    delivery.contentType = types[Int(choice) % types.count]
    if choice & 0x40 != 0 {
        delivery.attributes = ["specversion": "1.0", "id": "1", "source": "/", "type": "t", "iodebeziumop": "c"]
    }
    let formats: [ChangeFormat?] = [nil] + ChangeFormat.allCases
    let format = formats[Int(choice >> 3 & 7) % formats.count]
    guard let batch = try? ChangeBatch(reading: Array(input.dropLast()), delivery: delivery, format: format) else {
        return
    }
    for change in batch.changes {
        require(!change.table.isEmpty && !change.schema.isEmpty, "a change without a table or schema")
        require(
            (change.deduplicationID?.utf8.count ?? 0) <= ChangeLimits.deduplicationIDBytesMax, "an id above the limit")
        for case let row? in [change.record, change.oldRecord] {
            // Rows are stored as JSON, and must be readable with the reader's own bounds.
            let bytes = JSONWriter.bytes(JSONValue.object(row))
            require((try? JSONValue(parsing: bytes)) != nil, "a row whose JSON cannot be read back")
        }
    }
}

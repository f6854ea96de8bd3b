import BellhopClient
import Testing

/// The parts of an answer that tests compare.
extension ServiceAnswer {
    /// The status and code of an error: `409 booking.overlap`.
    var refusal: String { "\(status) \(json["code"].string ?? "without a code")" }

    /// The status and pointers of a validation error: `422 /userId`.
    var mistakes: String { ([String(status)] + pointers).joined(separator: " ") }

    /// The JSON pointers of a validation error.
    var pointers: [String] { (json["errors"].array ?? []).compactMap { $0["pointer"].string } }

    /// The elements of a list.
    var items: [JSON] { json["items"].array ?? [] }

    /// The id of the created notification.
    var notificationID: String { get throws { try #require(json["notification"]["id"].string) } }

    /// The numbers of a 202, for a single comparison: status, accepted, duplicates, rejected.
    var counts: [Int] {
        [status, json["accepted"].int ?? -1, json["duplicates"].int ?? -1, json["rejected"].array?.count ?? -1]
    }

    /// The index and pointer of each rejected item, such as `1 /1/record/id`.
    var places: [String] {
        (json["rejected"].array ?? []).map { "\($0["index"].int ?? -1) \($0["pointer"].string ?? "?")" }
    }
}

import BellhopClient
import Testing

/// What tests compare of an answer.
extension ServiceAnswer {
    /// Status and code of a refusal: `409 booking.overlap`.
    var refusal: String { "\(status) \(json["code"].string ?? "without a code")" }

    /// Status and places of a refusal of input: `422 /userId`.
    var mistakes: String { ([String(status)] + pointers).joined(separator: " ") }

    /// The places of what a refusal finds wrong.
    var pointers: [String] { (json["errors"].array ?? []).compactMap { $0["pointer"].string } }

    /// The elements of a list.
    var items: [JSON] { json["items"].array ?? [] }

    /// The id of the notification that was made.
    var notificationID: String { get throws { try #require(json["notification"]["id"].string) } }

    /// `2 accepted, 1 duplicate, 0 rejected` of a 202 in numbers, for comparing at once.
    var counts: [Int] {
        [status, json["accepted"].int ?? -1, json["duplicates"].int ?? -1, json["rejected"].array?.count ?? -1]
    }

    /// `1 /1/record/id` of each rejected item.
    var places: [String] {
        (json["rejected"].array ?? []).map { "\($0["index"].int ?? -1) \($0["pointer"].string ?? "?")" }
    }
}

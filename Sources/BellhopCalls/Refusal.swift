import Foundation

/// The members of a problem (RFC 9457) as the service or a proxy sent it. A member of another form counts as absent.
package struct Refusal: Decodable {
    package struct Place: Decodable {
        package let pointer: String?
        package let detail: String?
    }

    package private(set) var status: Int?
    package private(set) var code: String?
    package private(set) var title: String?
    package private(set) var detail: String?
    package private(set) var pointer: String?
    package private(set) var requestId: String?
    package private(set) var allowed: [String]?
    package private(set) var errors: [Place] = []

    private enum CodingKeys: CodingKey { case status, code, title, detail, pointer, requestId, allowed, errors }

    package init(_ data: Data) {
        if let read = try? JSONDecoder().decode(Refusal.self, from: data) { self = read }
    }

    package init(_ json: JSON) { self.init(json.data) }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        func read<Value: Decodable>(_ key: CodingKeys) -> Value? { try? members.decode(Value.self, forKey: key) }
        (status, code, title, detail) = (read(.status), read(.code), read(.title), read(.detail))
        (pointer, requestId, allowed, errors) = (read(.pointer), read(.requestId), read(.allowed), read(.errors) ?? [])
    }
}

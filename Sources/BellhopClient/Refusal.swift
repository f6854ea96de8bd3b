import Foundation

/// The members of a problem (RFC 9457) as the service or a proxy sent it. A member of another form counts as absent.
struct Refusal: Decodable {
    struct Place: Decodable {
        let pointer: String?
        let detail: String?
    }

    private(set) var status: Int?
    private(set) var code: String?
    private(set) var title: String?
    private(set) var detail: String?
    private(set) var pointer: String?
    private(set) var requestId: String?
    private(set) var allowed: [String]?
    private(set) var errors: [Place] = []

    private enum CodingKeys: CodingKey { case status, code, title, detail, pointer, requestId, allowed, errors }

    init(_ data: Data) {
        if let read = try? JSONDecoder().decode(Refusal.self, from: data) { self = read }
    }

    init(_ json: JSON) { self.init(json.data) }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        func read<Value: Decodable>(_ key: CodingKeys) -> Value? { try? members.decode(Value.self, forKey: key) }
        (status, code, title, detail) = (read(.status), read(.code), read(.title), read(.detail))
        (pointer, requestId, allowed, errors) = (read(.pointer), read(.requestId), read(.allowed), read(.errors) ?? [])
    }
}

import Cryptography
import MicroHTTP
import Values

/// Creates and verifies the cursors of lists. They are opaque, signed, and bound to the caller and the filters, so that
/// they cannot be forged, shared, or used on another list.
struct PageCursors: Sendable {
    private let key: AuthenticationKey
    private static let codeBytes = 12

    init(secret: [UInt8]) {
        key = AuthenticationKey(SHA256.hash(Array("bellhop page cursors\n".utf8) + secret))
    }

    /// Returns the scope that a cursor is bound to: the route, the caller, and every query item but `cursor` and
    /// `limit`.
    static func filters(of call: Call) -> String {
        let items = call.request.queryItems.filter { $0.name != "cursor" && $0.name != "limit" }
            .map { "\($0.name)=\($0.value ?? "")" }.sorted()
        return ([call.request.path, call.caller.tenant.text, call.caller.userId.text] + items).joined(separator: "\n")
    }

    func seal(_ after: String, filters: String) -> String {
        RFC4648.encodeURL(code(of: after, filters) + Array(after.utf8))
    }

    func open(_ cursor: String, filters: String) throws(Failure) -> String {
        guard let bytes = RFC4648.decodeURL(cursor.utf8), bytes.count > Self.codeBytes,
            let after = String(validating: bytes[Self.codeBytes...], as: UTF8.self),
            constantTimeEqual(bytes[..<Self.codeBytes], code(of: after, filters))
        else { throw Failure.invalid("?cursor", "is not a cursor of this list with these filters") }
        return after
    }

    private func code(of after: String, _ filters: String) -> [UInt8] {
        Array(key.code(for: Array(filters.utf8) + [0] + Array(after.utf8)).prefix(Self.codeBytes))
    }
}

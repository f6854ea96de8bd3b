import Crypto
import Domain
import Foundation
import MicroHTTP

/// Makes and opens the cursors of lists: opaque, signed, and bound to the caller and the filters they were made for, so
/// that none can be forged, lent, or used on another list.
struct PageCursors: Sendable {
    private let key: SymmetricKey
    private static let codeBytes = 12

    init(secret: [UInt8]) {
        key = SymmetricKey(data: SHA256.hash(data: Array("bellhop page cursors\n".utf8) + secret))
    }

    /// What a cursor is bound to: the route, the caller, and every item of the query but `cursor` and `limit`.
    static func filters(of call: Call) -> String {
        let items = call.request.queryItems.filter { $0.name != "cursor" && $0.name != "limit" }
            .map { "\($0.name)=\($0.value ?? "")" }.sorted()
        return ([call.request.path, call.caller.tenant, call.caller.userId.text] + items).joined(separator: "\n")
    }

    func seal(_ after: String, filters: String) -> String {
        Data(code(of: after, filters) + Array(after.utf8)).base64EncodedString()
            .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }

    func open(_ cursor: String, filters: String) throws(Failure) -> String {
        guard let bytes = Base64URL.decode(cursor.utf8), bytes.count > Self.codeBytes,
            let after = String(validating: bytes[Self.codeBytes...], as: UTF8.self),
            bytes[..<Self.codeBytes].elementsEqual(code(of: after, filters))
        else { throw Failure.invalid("?cursor", "is not one that this list gave for these filters") }
        return after
    }

    private func code(of after: String, _ filters: String) -> [UInt8] {
        let message = Array(filters.utf8) + [0] + Array(after.utf8)
        return Array(HMAC<SHA256>.authenticationCode(for: message, using: key).prefix(Self.codeBytes))
    }
}

/// RFC 4648 section 5 without padding, as tokens and cursors use it.
enum Base64URL {
    /// Nil for anything that is not exactly it.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 3 / 4)
        var (word, bits) = (UInt32(0), 0)
        for byte in text {
            let value: UInt8
            switch byte {
            case 65...90: value = byte - 65
            case 97...122: value = byte - 71
            case 48...57: value = byte + 4
            case UInt8(ascii: "-"): value = 62
            case UInt8(ascii: "_"): value = 63
            default: return nil
            }
            word = word << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: word >> UInt32(bits)))
            }
        }
        // Left-over bits must be zero, or one token would have several spellings.
        guard word & ((1 << UInt32(bits)) - 1) == 0 else { return nil }
        return bytes
    }
}

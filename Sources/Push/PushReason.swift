/// The words that push services use for a reason, such as `BadDeviceToken` and `UNREGISTERED`.
enum PushReason {
    /// Longer words would fill the metrics, which count by reason.
    static let bytesMax = 64

    /// Returns the word if it is one. PostgreSQL stores no text with a NUL: the outcome could not be stored, and the
    /// sender would try it again forever.
    static func word(_ text: String?) -> String? {
        guard let text, !text.isEmpty, text.utf8.count <= bytesMax, text.utf8.allSatisfy(isPart) else { return nil }
        return text
    }

    private static func isPart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."): true
        default: false
        }
    }
}

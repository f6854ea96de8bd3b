import Values

/// The metadata of a delivery of changes, from the request's headers.
public struct ChangeDelivery: Sendable, Hashable {
    public var contentType: String?
    /// The CloudEvents attributes of the binary mode (`ce-type: …`), with names in lower case without the prefix.
    public var attributes: [String: String] = [:]
    /// `webhook-id`: the same for every attempt to deliver this body, so it identifies duplicates.
    public var deliveryID: String?
    /// `X-Client-Id`: the client through which all of these changes were made.
    public var originID: String?

    public init() {}

    /// Reads the headers; throws the names of all unusable ones.
    public init(headers: some Sequence<(String, String)>) throws(Failure) {
        var mistakes: [Failure.Field] = []
        var seen: Set<String> = []
        for (name, value) in headers {
            let name = name.lowercased()
            let isAttribute = name.hasPrefix("ce-")
            guard isAttribute || Self.names.contains(name) else { continue }
            // Of two values, one reader takes the first and another the last, and only one of them was signed.
            guard seen.insert(name).inserted else {
                mistakes.append(Failure.Field(name, "occurs twice"))
                continue
            }
            if isAttribute {
                if let decoded = Self.percentDecoded(value) {
                    attributes[String(name.dropFirst(3))] = decoded
                } else {
                    mistakes.append(Failure.Field(name, "must be percent-encoded UTF-8"))
                }
            } else if name == "content-type" {
                contentType = value
            } else if !Fields.isIdentifier(value) {
                mistakes.append(Self.badID(name))
            } else if name == "webhook-id" {
                deliveryID = value
            } else {
                originID = value
            }
        }
        guard mistakes.isEmpty else { throw Failure.invalid(mistakes) }
    }

    private static let names: Set<String> = ["content-type", "webhook-id", "x-client-id"]

    private static func badID(_ name: String) -> Failure.Field {
        Failure.Field(name, "must be 1 to \(Fields.idBytesMax) bytes without control characters")
    }

    /// Decodes a header value of CloudEvents (HTTP binding §3.1.3.2): quotes may enclose the value, `%20` stands for a
    /// space.
    private static func percentDecoded(_ value: String) -> String? {
        var bytes = Array(value.utf8)[...]
        if bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"") {
            bytes = bytes.dropFirst().dropLast()
        }
        var decoded: [UInt8] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            guard bytes[index] == UInt8(ascii: "%") else {
                decoded.append(bytes[index])
                index += 1
                continue
            }
            guard index + 2 < bytes.endIndex,
                let high = Character(Unicode.Scalar(bytes[index + 1])).hexDigitValue,
                let low = Character(Unicode.Scalar(bytes[index + 2])).hexDigitValue
            else { return nil }
            decoded.append(UInt8(high << 4 | low))
            index += 3
        }
        return String(validating: decoded, as: UTF8.self)
    }

    /// Whether the content type allows JSON.
    public var isJSON: Bool {
        guard let mediaType else { return true }
        return mediaType == "application/json" || mediaType.hasSuffix("+json")
    }

    /// The media type without its parameters, in lower case.
    var mediaType: String? {
        contentType.map { type in
            String(type.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" })
        }
    }
}

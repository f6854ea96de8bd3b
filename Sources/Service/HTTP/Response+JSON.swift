import MicroHTTP
import Values

extension Response {
    /// - Parameter tag: the tag of the shown version; the dispatcher answers a matching poll with 304.
    static func json(
        _ status: Int = 200, _ bytes: [UInt8], headers: HeaderFields = [], tag: EntityTag? = nil
    ) -> Response {
        var headers = HeaderFields(headers, reserving: decorationBytes)
        headers.append(tag == nil ? mediaType : taggedMediaType)
        if let tag { headers.append("ETag") { $0.append(contentsOf: tag.bytes) } }
        return Response(status: status, headers: headers, body: .bytes(bytes))
    }

    /// Room for the other header fields, including the fields that `ResponseDecoration` adds.
    private static let decorationBytes = 384
    private static let mediaType: HeaderFields = [("Content-Type", "application/json")]
    // The client may cache the answer, but must revalidate it each time: it depends on the token.
    private static let unstored: HeaderFields = [("Cache-Control", "private, no-cache")]
    private static let taggedMediaType: HeaderFields = [
        ("Content-Type", "application/json"), ("Cache-Control", "private, no-cache"),
    ]

    /// Makes a response with one value that writes itself.
    static func json(
        _ status: Int = 200, _ value: some JSONWritable, headers: HeaderFields = [],
        tag: EntityTag? = nil
    ) -> Response {
        json(status, JSONWriter.bytes(value), headers: headers, tag: tag)
    }

    /// Makes a response with one object of the written members.
    static func json(
        _ status: Int = 200, headers: HeaderFields = [], tag: EntityTag? = nil,
        _ members: (inout JSONWriter) -> Void
    ) -> Response {
        json(status, JSONWriter.object(members), headers: headers, tag: tag)
    }

    /// Makes a response with one object of the written members, and the caller's counts at the end of the transaction.
    static func withBadges(
        _ tx: Transaction, status: Int = 200, _ members: (inout JSONWriter) -> Void = { _ in }
    ) throws -> Response {
        let badges = try tx.badges(of: tx.caller.userId)
        return json(status) { writer in
            members(&writer)
            writer.member("badges", badges)
        }
    }

    /// Adds the address of the created resource.
    func located(at collection: StaticString, _ id: ID<some Any>) -> Response {
        var response = self
        response.headers.append("Location", "\(collection)/\(Self.encoded(id.text))")
        return response
    }

    static let noContent = Response(status: 204, headers: [], body: .none)

    static func notModified(_ tag: EntityTag, headers: HeaderFields = []) -> Response {
        var headers = HeaderFields(headers, reserving: decorationBytes)
        headers.append(unstored)
        headers.append("ETag") { $0.append(contentsOf: tag.bytes) }
        return Response(status: 304, headers: headers, body: .none)
    }

    /// Returns a text encoded for a path or a query.
    static func encoded(_ text: String) -> String {
        text.utf8.reduce(into: "") { out, byte in
            if byte.isAlphanumeric || "-._~".utf8.contains(byte) {
                out.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                out += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
            }
        }
    }
}

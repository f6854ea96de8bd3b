import Domain
import MicroHTTP

extension Response {
    /// - Parameter etag: the version of what is shown, without quotes; the core answers a matching poll with 304.
    static func json(
        _ status: Int = 200, _ bytes: [UInt8], headers: [(name: String, value: String)] = [], etag: String? = nil
    ) -> Response {
        var headers = headers
        headers.append(("Content-Type", "application/json"))
        if let etag {
            headers.append(("ETag", "\"\(etag)\""))
            // Kept by the one who asked, and asked again each time: the answer depends on the token.
            headers.append(("Cache-Control", "private, no-cache"))
        }
        return Response(status: status, headers: headers, body: .bytes(bytes))
    }

    static let noContent = Response(status: 204, headers: [], body: .none)

    static func notModified(etag: String, headers: [(name: String, value: String)] = []) -> Response {
        Response(
            status: 304, headers: headers + [("ETag", "\"\(etag)\""), ("Cache-Control", "private, no-cache")],
            body: .none)
    }

    /// One page of a list, with the address of the next one (RFC 8288).
    ///
    /// - Parameter next: the key of the page's last item, if more follow.
    static func page(_ items: some Sequence<some JSONWritable>, next: String?, _ call: Call) -> Response {
        let cursor = next.map { call.cursors.seal($0, filters: PageCursors.filters(of: call)) }
        let body = JSONWriter.object { writer in
            writer.member("items", items)
            writer.member("next", cursor)
        }
        var headers: [(name: String, value: String)] = []
        if let cursor {
            let kept = call.request.queryItems.filter { $0.name != "cursor" }
                .map { "\(encoded($0.name))=\(encoded($0.value ?? ""))&" }.joined()
            headers.append(("Link", "<\(call.request.path)?\(kept)cursor=\(cursor)>; rel=\"next\""))
        }
        return .json(200, body, headers: headers)
    }

    /// A text as a part of a path or a query.
    static func encoded(_ text: String) -> String {
        var out = ""
        for byte in text.utf8 {
            switch byte {
            case 65...90, 97...122, 48...57, 45, 46, 95, 126: out.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = Array("0123456789ABCDEF".unicodeScalars)
                out += "%"
                out.unicodeScalars.append(digits[Int(byte >> 4)])
                out.unicodeScalars.append(digits[Int(byte & 15)])
            }
        }
        return out
    }
}

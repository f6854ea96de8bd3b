import CZlib
import MicroHTTP

/// A public file of the binary, compressed once. It is revalidated each time, and mostly answered by a 304.
///
/// The two forms have different entity tags (RFC 9110 §8.8.3). No secret is compressed, so the length reveals nothing.
struct PublicFile: Sendable {
    private let plain: Response
    private let compressed: Response?

    init(_ content: [UInt8], type: String, headers: HeaderFields = []) {
        var headers = headers
        headers.append("Content-Type", type)
        headers.append("Cache-Control", "no-cache")
        headers.append("Vary", "Accept-Encoding")
        func response(_ body: [UInt8], _ fields: HeaderFields) -> Response {
            var headers = headers
            headers.append(fields)
            headers.append("ETag", String(decoding: EntityTag(ofAll: body).bytes, as: UTF8.self))
            return Response(status: 200, headers: headers, body: .shared(SharedBody(body)))
        }
        plain = response(content, [])
        let small = Self.gzip(content)
        // Otherwise the header costs more than is saved.
        let isWorthIt = !small.isEmpty && small.count + 64 < content.count
        compressed = isWorthIt ? response(small, [("Content-Encoding", "gzip")]) : nil
    }

    /// Returns the form that the client accepts.
    func response(to request: Request) -> Response {
        guard let compressed, Self.acceptsGzip(request.header("Accept-Encoding") ?? "") else { return plain }
        return compressed
    }

    /// Whether an `Accept-Encoding` header allows gzip (RFC 9110 §12.5.3). The name wins over `*`.
    static func acceptsGzip(_ header: String) -> Bool {
        var others = false
        for item in header.lowercased().split(separator: ",") {
            let parts = item.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
            switch parts.first {
            case "gzip", "x-gzip": return weight > 0
            case "*": others = weight > 0
            default: break
            }
        }
        return others
    }

    private static func gzip(_ content: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: czlib_gzip_bytes_max(content.count)) { target, count in
            // The target has the capacity that was asked for, or more.
            count = content.withUnsafeBufferPointer {
                czlib_gzip($0.baseAddress, $0.count, target.baseAddress, target.count)
            }
        }
    }
}

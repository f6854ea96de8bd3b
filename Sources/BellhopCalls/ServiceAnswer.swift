import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An answer of the service, of any status.
public struct ServiceAnswer: Sendable {
    public let status: Int
    /// Names in lower case.
    public let headers: [String: String]
    public let body: Data

    public init(status: Int, headers: [String: String], body: Data) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Returns the value of a header; the name is case-insensitive.
    public subscript(header name: String) -> String? { headers[name.lowercased()] }

    /// The body as JSON; `null` if it is not JSON.
    public var json: JSON { (try? JSON(parsing: body)) ?? .null }
    public var text: String { String(decoding: body, as: UTF8.self) }
    public var isSuccess: Bool { (200..<300).contains(status) }

    /// The problem of a refusal in one line: `409 booking.overlap: The barber is taken.`
    public var problem: String {
        let refusal = Refusal(body)
        let code = refusal.code.map { " \($0)" } ?? ""
        let places = refusal.errors.compactMap { place in place.pointer.map { "\($0) \(place.detail ?? "")" } }
        let parts = [refusal.detail ?? refusal.title].compactMap(\.self) + places
        return "\(status)\(code)" + (parts.isEmpty ? "" : ": " + parts.joined(separator: "; "))
    }

    /// Returns `Retry-After`, given in seconds or as an HTTP date, in milliseconds. Nil if it is absent or malformed.
    public func retryAfterMilliseconds(now: Date = Date()) -> Int? {
        ServiceAnswer.retryAfterMilliseconds(headers["retry-after"], now: now)
    }

    static func retryAfterMilliseconds(_ text: String?, now: Date) -> Int? {
        guard let text = text?.trimmingCharacters(in: .whitespaces) else { return nil }
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return min(Int(text) ?? .max, 1 << 32) * 1000
        }
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        // The three forms of a date of HTTP (RFC 9110, 5.6.7).
        for form in ["EEE, dd MMM yyyy HH:mm:ss zzz", "EEEE, dd-MMM-yy HH:mm:ss zzz", "EEE MMM d HH:mm:ss yyyy"] {
            format.dateFormat = form
            if let date = format.date(from: text) { return max(0, Int(date.timeIntervalSince(now) * 1000)) }
        }
        return nil
    }

    static func headers(of response: HTTPURLResponse) -> [String: String] {
        Dictionary(
            response.allHeaderFields.map { ("\($0)".lowercased(), "\($1)") }, uniquingKeysWith: { _, last in last })
    }

    static func result(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) -> Result<
        ServiceAnswer, any Error
    > {
        if let error {
            if (error as? URLError)?.code == .cancelled { return .failure(CancellationError()) }
            return .failure(BellhopClient.TransportFailure.unreachable(error.localizedDescription))
        }
        guard let response = response as? HTTPURLResponse else {
            return .failure(BellhopClient.TransportFailure.unreachable("the response is not HTTP"))
        }
        return .success(
            ServiceAnswer(status: response.statusCode, headers: headers(of: response), body: data ?? Data()))
    }
}

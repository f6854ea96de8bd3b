import Foundation

extension Bellhop {
    /// A refusal of a call by the service (RFC 9457).
    public struct Problem: Error, Sendable, Hashable, CustomStringConvertible {
        public let status: Int
        /// The stable code to branch on. Nil if a proxy or the HTTP library refused the call.
        public let code: Code?
        public let title: String
        /// A sentence to show to people.
        public let detail: String
        /// The invalid places of the request.
        public let errors: [Place]
        /// The accepted values, for codes that concern one of several: `booking.invalid_transition`.
        public let allowed: [String]
        /// The id of the request in the service's log.
        public let requestID: String?
        /// The time to wait before a retry.
        public let retryAfter: Duration?

        /// A mistake in a request: its place as a JSON pointer, and a description.
        public struct Place: Sendable, Hashable {
            public let pointer: String
            public let detail: String

            public init(pointer: String, detail: String) {
                self.pointer = pointer
                self.detail = detail
            }
        }

        public init(
            status: Int, code: Code?, title: String = "", detail: String = "", errors: [Place] = [],
            allowed: [String] = [], requestID: String? = nil, retryAfter: Duration? = nil
        ) {
            self.status = status
            self.code = code
            self.title = title
            self.detail = detail
            self.errors = errors
            self.allowed = allowed
            self.requestID = requestID
            self.retryAfter = retryAfter
        }

        /// Reads the problem from an answer, whether the service or a proxy sent it.
        public init(_ answer: ServiceAnswer) {
            let refusal = Refusal(answer.body)
            self.init(
                status: answer.status, code: refusal.code.map { Code(rawValue: $0) }, title: refusal.title ?? "",
                detail: refusal.detail ?? "",
                errors: refusal.errors.compactMap { place in
                    place.pointer.map { Place(pointer: $0, detail: place.detail ?? "") }
                },
                allowed: refusal.allowed ?? [], requestID: refusal.requestId ?? answer[header: "X-Request-Id"],
                retryAfter: answer.retryAfterMilliseconds().map { .milliseconds($0) })
        }

        public var description: String {
            let places = errors.map { "\($0.pointer) \($0.detail)" }
            let parts = [detail.isEmpty ? title : detail].filter { !$0.isEmpty } + places
            return "\(status)\(code.map { " \($0)" } ?? "")"
                + (parts.isEmpty ? "" : ": " + parts.joined(separator: "; "))
        }
    }
}

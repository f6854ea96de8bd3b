import MicroHTTP
import Threads
import Values

/// The memory budgets of request bodies: one for each caller, one for all senders whose token or signature is not
/// verified yet, and one for all bodies together.
///
/// The memory is reserved when the head is read, and released when the last reference to the request is gone.
final class BodyBudgets: Sendable {
    /// The sender of a body, as identified by the head.
    enum Sender: Hashable, Sendable {
        case unknown
        case user(Owner)
        case backend(Owner)

        init(_ caller: Caller) { self = caller.isService ? .backend(caller.owner) : .user(caller.owner) }

        var bytesMax: Int {
            switch self {
            case .unknown: Limits.unknownBodiesBytesMax
            case .user: Limits.userBodiesBytesMax
            case .backend: Limits.backendBodiesBytesMax
            }
        }

        fileprivate var label: String {
            switch self {
            case .unknown: "unknown"
            case .user: "user"
            case .backend: "backend"
            }
        }
    }

    private struct State {
        /// Reserved bytes by sender. Senders without a reservation have no entry, so open requests bound the size.
        var bytes: [Sender: Int] = [:]
        var total = 0
    }

    private let state = Locked(State())

    init(_ metrics: MetricsRegistry) {
        metrics.register { [self] text in
            let sums = state.withLock { state in
                state.bytes.reduce(into: ["unknown": 0, "user": 0, "backend": 0]) {
                    $0[$1.key.label, default: 0] += $1.value
                }
            }
            text.family(
                "bellhop_http_body_bytes", .gauge, "Bytes reserved for request bodies, by sender.",
                by: "sender", samples: sums.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        }
    }

    /// Reserves memory for a body.
    ///
    /// - Throws: 429 if the sender's own budget is exhausted, 503 if a shared budget is.
    func reserve(_ bytes: Int, for sender: Sender) throws(Failure) -> any BodyReservation {
        try take(bytes, for: sender)
        return Reservation(bytes, for: sender, of: self)
    }

    /// Returns the bytes that a sender's bodies currently reserve.
    func reservedBytes(of sender: Sender) -> Int { state.withLock { $0.bytes[sender] ?? 0 } }

    private func take(_ bytes: Int, for sender: Sender) throws(Failure) {
        try state.withLock { state throws(Failure) in
            let own = (state.bytes[sender] ?? 0) + bytes
            guard own <= sender.bytesMax else { throw Self.refusal(of: sender) }
            guard state.total + bytes <= Limits.bodiesBytesMax else { throw Self.noRoom }
            state.bytes[sender] = own
            state.total += bytes
        }
    }

    private func release(_ bytes: Int, of sender: Sender) {
        state.withLock { state in
            let rest = (state.bytes[sender] ?? 0) - bytes
            state.bytes[sender] = rest > 0 ? rest : nil
            state.total -= bytes
        }
    }

    private static func refusal(of sender: Sender) -> Failure {
        guard sender != .unknown else { return noRoom }
        return Failure(
            .rateLimited, "body_budget",
            "Your concurrent request bodies may have \(sender.bytesMax) bytes in total. Wait for responses before you send more.",
            retryAfterSeconds: 1)
    }

    static let noRoom = Failure.unavailable(
        "The service has no memory for another request body at the moment. Try again later.", code: "request.no_room")

    private final class Reservation: BodyReservation {
        private let bytes: Locked<Int>
        private let sender: Sender
        private let budgets: BodyBudgets

        init(_ bytes: Int, for sender: Sender, of budgets: BodyBudgets) {
            (self.bytes, self.sender, self.budgets) = (Locked(bytes), sender, budgets)
        }

        deinit { budgets.release(bytes.withLock { $0 }, of: sender) }

        func grow(to wanted: Int) -> Bool {
            bytes.withLock { bytes in
                guard wanted > bytes else { return true }
                guard (try? budgets.take(wanted - bytes, for: sender)) != nil else { return false }
                bytes = wanted
                return true
            }
        }
    }
}

import Cryptography
import Realtime
import Threads

/// The log that this process serves streams from: its name, and how the ids of its events are made. They change only if
/// the log loses events that were published.
final class LogIdentity: Sendable {
    private let secret: [UInt8]
    private let present: Locked<EventIDs>

    /// - Parameter secret: of the database, so that all replicas make the same ids, also after a restart.
    init(_ epoch: String, secret: [UInt8]) {
        self.secret = secret
        present = Locked(Self.ids(of: epoch, secret))
    }

    var ids: EventIDs { present.withLock { $0 } }

    var epoch: String {
        get { present.withLock { $0.epoch } }
        set {
            let ids = Self.ids(of: newValue, secret)
            present.withLock { $0 = ids }
        }
    }

    /// Each epoch has a key of its own: numbers that are given again have other ids.
    private static func ids(of epoch: String, _ secret: [UInt8]) -> EventIDs {
        let code = AuthenticationKey(secret).code(for: "bellhop event ids\n\(epoch)".utf8)
        return EventIDs(epoch: epoch, key: Array(code.prefix(KeyedPermutation.keyBytes)))
    }
}

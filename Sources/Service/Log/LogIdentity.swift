import Cryptography
import Realtime
import Threads

/// The identity of the log from which this process serves streams: its epoch, and the encoder of its event ids. It
/// changes only if the log loses published events.
final class LogIdentity: Sendable {
    private let secret: [UInt8]
    private let present: Locked<EventIDs>

    /// Creates the identity.
    ///
    /// - Parameter secret: A secret of the database, so that all replicas make the same ids, even after a restart.
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

    /// Returns the encoder of an epoch's ids. Each epoch has its own key, so numbers that are assigned again have
    /// different ids.
    private static func ids(of epoch: String, _ secret: [UInt8]) -> EventIDs {
        let code = AuthenticationKey(secret).code(for: "bellhop event ids\n\(epoch)".utf8)
        return EventIDs(epoch: epoch, key: Array(code.prefix(KeyedPermutation.keyBytes)))
    }
}

import Threads

/// The name of the log that this process serves streams from (`Cursor`). It changes only if the log loses events that
/// were published.
final class LogIdentity: Sendable {
    private let name: Locked<String>

    init(_ name: String) { self.name = Locked(name) }

    var epoch: String {
        get { name.withLock { $0 } }
        set { name.withLock { $0 = newValue } }
    }
}

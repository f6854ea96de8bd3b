import Foundation

/// The name of the log that this process serves streams from (`Cursor`). It changes only if the log loses events that
/// were told.
///
/// `@unchecked Sendable`: `name` is only touched while `lock` is held.
final class LogIdentity: @unchecked Sendable {
    /// Guards `name`.
    private let lock = NSLock()
    private var name: String

    init(_ name: String) { self.name = name }

    var epoch: String {
        get { lock.withLock { name } }
        set { lock.withLock { name = newValue } }
    }
}

import Foundation
import Values

@testable import Service

/// A clock that stands until a test moves it.
///
/// `@unchecked Sendable`: `moment` is only touched with `lock` locked.
final class ManualClock: @unchecked Sendable {
    /// Guards `moment`.
    private let lock = NSLock()
    private var moment: Timestamp

    /// - Parameter moment: nil starts at the present, so that tokens of other tools are valid too.
    init(_ moment: Timestamp?) {
        self.moment = moment ?? Clock.system.now()
    }

    var now: Timestamp { lock.withLock { moment } }

    var clock: Clock { Clock { [self] in now } }

    func set(_ moment: Timestamp) { lock.withLock { self.moment = moment } }

    func advance(seconds: Int64) { lock.withLock { moment = moment.adding(seconds: seconds) } }
}

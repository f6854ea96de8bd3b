import Database
import Foundation
import Logging
import MicroHTTP

/// A retry, up to a deadline, of the steps of a start that another process still blocks. The predecessor may be about
/// to end.
struct StartRetry {
    private let clock: Clock
    private let deadline: Duration
    private let wait: (Duration) -> Void
    private let logger: Logger
    private var hasWarned = false

    /// - Parameters:
    ///   - patience: The time for the whole start, however many steps are blocked.
    ///   - wait: Blocks the thread for the given time.
    init(
        _ patience: Duration, clock: Clock, logger: Logger,
        wait: @escaping (Duration) -> Void = { Thread.sleep(forTimeInterval: $0 / .seconds(1)) }
    ) {
        self.clock = clock
        self.logger = logger
        self.wait = wait
        deadline = clock.uptime() + patience
    }

    /// Runs work, and retries up to the deadline while another process holds the database file or the address.
    mutating func attempt<Value>(_ work: () throws -> Value) throws -> Value {
        while true {
            do {
                return try work()
            } catch  where Self.isHeldByAnother(error) && clock.uptime() < deadline {
                if !hasWarned {
                    logger.warning(
                        "Another process holds a resource that is needed to start. Retrying for a short time.",
                        metadata: ["reason": "\(Operations.reason(of: error))"])
                }
                hasWarned = true
                wait(Self.pause)
            }
        }
    }

    /// Returns whether another process has the database file, or listens on the address.
    static func isHeldByAnother(_ error: any Error) -> Bool {
        switch error {
        case let error as DatabaseError: error.code == .locked
        case let error as ServerError: error.isAddressInUse
        default: false
        }
    }

    private static let pause: Duration = .milliseconds(50)
}

extension App {
    /// How long `bellhop serve` waits for its predecessor. Supervisors start the next process when the last one has
    /// ended, and the kernel frees the rest within milliseconds. A longer wait would delay the error for an operator
    /// that starts a second service.
    public static let startPatience: Duration = .seconds(2)
}

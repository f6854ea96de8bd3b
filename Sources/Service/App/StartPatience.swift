import Database
import Foundation
import Logging
import MicroHTTP

/// How long a start waits for what another process still holds: the predecessor may be about to end.
struct StartPatience {
    private let clock: Clock
    private let deadline: Duration
    private let wait: (Duration) -> Void
    private let logger: Logger
    private var hasWarned = false

    /// - Parameters:
    ///   - patience: for the whole start, however many things are held.
    ///   - wait: blocks the thread for that long.
    init(
        _ patience: Duration, clock: Clock, logger: Logger,
        wait: @escaping (Duration) -> Void = { Thread.sleep(forTimeInterval: $0 / .seconds(1)) }
    ) {
        self.clock = clock
        self.logger = logger
        self.wait = wait
        deadline = clock.uptime() + patience
    }

    /// Tries again while another process holds the database file or the address, up to the deadline.
    mutating func attempt<Value>(_ work: () throws -> Value) throws -> Value {
        while true {
            do {
                return try work()
            } catch  where Self.isHeldByAnother(error) && clock.uptime() < deadline {
                if !hasWarned {
                    logger.warning(
                        "Another process holds what this start needs. It is tried again for a moment.",
                        metadata: ["reason": "\(Operations.reason(of: error))"])
                }
                hasWarned = true
                wait(Self.pause)
            }
        }
    }

    /// Whether another process has the database file, or listens on the address.
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
    /// How long `bellhop serve` waits for its predecessor. Supervisors start the next process when the last one has ended;
    /// what the kernel holds for it longer passes in milliseconds, and an operator who starts a second one wants to know.
    public static let startPatience: Duration = .seconds(2)
}

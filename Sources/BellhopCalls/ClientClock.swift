import Foundation

/// The clock and the random source of a client; tests inject their own.
public struct ClientClock: Sendable {
    /// Milliseconds since 1970.
    package let now: @Sendable () -> Int
    /// Between 0 and 1.
    package let random: @Sendable () -> Double
    /// Sleeps until that moment, or until the task is cancelled.
    package let sleep: @Sendable (_ until: Int) async throws -> Void

    public init(
        now: @escaping @Sendable () -> Int, random: @escaping @Sendable () -> Double,
        sleep: @escaping @Sendable (_ until: Int) async throws -> Void
    ) {
        self.now = now
        self.random = random
        self.sleep = sleep
    }

    /// The wall clock at the start of the process plus the time elapsed since. Setting the clock back therefore
    /// prolongs no wait.
    public static let system = ClientClock(
        now: systemMilliseconds, random: { Double.random(in: 0...1) },
        sleep: { try await Task.sleep(for: .milliseconds(max(0, $0 - systemMilliseconds()))) })

    private static let start = (wall: Date().timeIntervalSince1970, uptime: ContinuousClock.now)

    @Sendable private static func systemMilliseconds() -> Int {
        let passed = start.uptime.duration(to: .now).components
        let seconds = start.wall + Double(passed.seconds) + Double(passed.attoseconds) * 1e-18
        return Int(seconds * 1000)
    }
}

/// The timers of one machine, one per name.
package struct Timers {
    private var all: [String: (number: Int, task: Task<Void, Never>)] = [:]
    private var count = 0

    package init() {}

    /// Replaces the timer of that name; without a moment, stops it. `fire` receives the number for ``take(_:_:)``.
    package mutating func set(
        _ name: String, at: Int?, _ clock: ClientClock, fire: @escaping @Sendable (Int) async -> Void
    ) {
        all.removeValue(forKey: name)?.task.cancel()
        guard let at else { return }
        count += 1
        let number = count
        let task = Task {
            do { try await clock.sleep(at) } catch { return }
            await fire(number)
        }
        all[name] = (number, task)
    }

    /// Returns false if the timer that fired was stopped or replaced meanwhile.
    package mutating func take(_ name: String, _ number: Int) -> Bool {
        guard all[name]?.number == number else { return false }
        all[name] = nil
        return true
    }

    package mutating func stopAll() {
        for timer in all.values { timer.task.cancel() }
        all = [:]
    }
}

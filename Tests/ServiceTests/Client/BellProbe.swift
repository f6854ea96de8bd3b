import BellhopClient
import TestSupport
import Testing
import Values

/// A bell connected to a test service, and the events it has received.
@MainActor final class BellProbe {
    let bell: Bell
    private(set) var heard: [Bell.Event] = []
    private var listening: Task<Void, Never>?

    /// - Parameter isClockOwn: whether the options contain the test's own clock; otherwise the clock starts at the
    ///   service's time.
    init(
        _ service: TestService, token: BellhopClient.TokenProvider, _ options: Bell.Options = Bell.Options(),
        isClockOwn: Bool = false
    ) {
        var options = options
        if !isClockOwn {
            options.clock = Self.clock(from: Int(service.clock.now.microseconds / 1000))
            // With the faster clock, a slow machine would look like a dead connection.
            options.limits.connectMilliseconds = 1 << 40
            options.limits.silenceMilliseconds = 1 << 40
            options.limits.doubtMilliseconds = 1 << 40
        }
        // Waits of a second would only make the tests slower.
        options.limits.firstMilliseconds = 20
        options.limits.wakeMilliseconds = 1
        bell = Bell(url: service.baseURL, token: token, options: options)
        let events = bell.events()
        listening = Task { [weak self] in for await event in events { self?.heard.append(event) } }
    }

    /// Returns a clock that runs ten times as fast as real time, so that no test waits a second for a retry.
    private static func clock(from moment: Int) -> ClientClock {
        let start = ContinuousClock.now
        let now: @Sendable () -> Int = { moment + Int(start.duration(to: .now) / .milliseconds(1)) * 10 }
        return ClientClock(
            now: now, random: { 0.5 },
            sleep: { try await Task.sleep(for: .milliseconds(max(0, $0 - now())) / 10) })
    }

    convenience init(
        _ service: TestService, as identity: TestService.Identity, _ options: Bell.Options = Bell.Options()
    ) {
        self.init(service, token: .fixed(service.token(for: identity)), options)
    }

    /// Uses a clock that stands still, like the service's: no timer fires by itself, however slow the machine is.
    static func still(
        _ service: TestService, as identity: TestService.Identity, _ options: Bell.Options = Bell.Options()
    ) -> BellProbe {
        let clock = StandingClock(at: Int(service.clock.now.microseconds / 1000))
        var options = options
        options.clock = ClientClock(now: { clock.now }, random: { 0.5 }, sleep: { try await clock.wait(until: $0) })
        return BellProbe(service, token: .fixed(service.token(for: identity)), options, isClockOwn: true)
    }

    func close() {
        bell.close()
        listening?.cancel()
    }

    func heard(_ name: String) -> [JSON] { heard.filter { $0.name == name }.map(\.data) }

    /// Waits until the bell meets a condition. The deadline only bounds a failure.
    func until(
        _ comment: Comment, sourceLocation: SourceLocation = #_sourceLocation, step: () -> Void = {},
        _ condition: () async throws -> Bool
    ) async throws {
        let deadline = ContinuousClock.now + patience
        while try await !condition() {
            try #require(ContinuousClock.now < deadline, comment, sourceLocation: sourceLocation)
            step()
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    func live(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await until("the bell is live", sourceLocation: sourceLocation) { bell.connection.status == .live }
    }
}

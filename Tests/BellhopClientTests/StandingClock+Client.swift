import BellhopClient
import TestSupport

extension StandingClock {
    var clock: ClientClock {
        ClientClock(now: { self.now }, random: { 0.5 }, sleep: { try await self.wait(until: $0) })
    }
}

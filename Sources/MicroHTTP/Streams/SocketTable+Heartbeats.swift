/// The time unit of a shard: a quarter of a second, which is precise enough for limits in seconds.
enum Ticks {
    static let perSecond = 4
    static let nanoseconds = 1_000_000_000 / UInt64(perSecond)

    /// Returns the number of ticks, at least one.
    static func count(seconds: Double) -> UInt32 { UInt32(max(1, min(seconds, 1e6) * Double(perSecond))) }
}

/// Heartbeats: a wheel over the slots.
///
/// Each stream is checked four times per interval. It gets a heartbeat if the silence would otherwise exceed the
/// interval before the next check. Each tick checks only every nth slot, so that neither the checks nor, among idle
/// streams, the sends happen all at once.
extension SocketTable {
    private var intervalTicks: UInt32 { UInt32(max(0, options.heartbeatSeconds) * Ticks.perSecond) }
    /// Ticks between two checks of a stream.
    private var checkTicks: UInt32 { max(1, intervalTicks / 4) }

    /// Returns the initial time of the last send of a new stream, spread over the interval. Otherwise all streams that
    /// opened in one burst would get their heartbeats at the same time forever.
    func firstHeartbeatPhase(_ index: UInt32) -> UInt32 { tick &- (index / checkTicks) % 4 * checkTicks }

    /// Advances the time to `next`, in ticks.
    func advance(to next: UInt32) {
        let passed = min(next &- tick, checkTicks)
        tick = next
        endLingering()
        guard intervalTicks > 0, !options.heartbeat.isEmpty else { return }
        for step in 0..<passed { look((next &- step) % checkTicks) }
    }

    private func look(_ first: UInt32) {
        for index in stride(from: Int(first), to: slots.count, by: Int(checkTicks)) {
            let slot = slots.pointer(at: index)
            guard slot.pointee.phase == .open, slot.pointee.list == StreamBatch.empty,
                tick &- slot.pointee.lastSentTick > intervalTicks - checkTicks
            else { continue }
            if slot.pointee.backlog != nil {
                // Nothing is to be added to the backlog. But after a memory shortage of the kernel, only this retries.
                drain(UInt32(index))
            } else {
                send(heartbeat, to: handle(UInt32(index)), collapse: 0)
                counters.heartbeats += 1
            }
        }
    }
}

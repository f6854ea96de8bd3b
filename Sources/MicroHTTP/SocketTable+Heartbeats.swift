/// A shard's unit of time, a quarter of a second: what is measured in seconds need not be known better.
enum Ticks {
    static let perSecond = 4
    static let nanoseconds = 1_000_000_000 / UInt64(perSecond)

    /// At least one.
    static func count(seconds: Double) -> UInt32 { UInt32(max(1, min(seconds, 1e6) * Double(perSecond))) }
}

/// Heartbeats: a wheel over the slots.
///
/// Each stream is looked at four times per interval, and gets a heartbeat if the silence would otherwise last longer
/// than the interval before the next look. A tick looks at every nth slot only, so that neither the looking nor, among
/// idle streams, the sending comes all at once.
extension SocketTable {
    private var intervalTicks: UInt32 { UInt32(max(0, options.heartbeatSeconds) * Ticks.perSecond) }
    /// Ticks between two looks at a stream.
    private var lookTicks: UInt32 { max(1, intervalTicks / 4) }

    /// When a new stream counts as last sent to: spread over the interval, or all streams of a burst of openings would
    /// be silent at the same time for ever.
    func firstHeartbeatPhase(_ index: UInt32) -> UInt32 { tick &- (index / lookTicks) % 4 * lookTicks }

    /// The time is now `next`, in ticks.
    func advance(to next: UInt32) {
        let passed = min(next &- tick, lookTicks)
        tick = next
        endLingering()
        guard intervalTicks > 0, !options.heartbeat.isEmpty else { return }
        for step in 0..<passed { look((next &- step) % lookTicks) }
    }

    private func look(_ first: UInt32) {
        for index in stride(from: Int(first), to: slots.count, by: Int(lookTicks)) {
            let slot = slots.pointer(at: index)
            guard slot.pointee.phase == .open, slot.pointee.list == StreamBatch.empty,
                tick &- slot.pointee.lastSentTick > intervalTicks - lookTicks
            else { continue }
            if slot.pointee.backlog != nil {
                // Nothing is to be added to what waits, but if the kernel was short of memory, nobody else tries again.
                drain(UInt32(index))
            } else {
                send(heartbeat, to: handle(UInt32(index)), collapse: 0)
                counters.heartbeats += 1
            }
        }
    }
}

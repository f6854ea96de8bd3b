/// Decides which stores' states a device keeps, and when they are written: behind, once changes rest, and within a
/// limit. The states that changed last stay.
struct OfflineMachine: Sendable {
    struct Limits: Sendable, Hashable {
        /// Bytes of one user. Without it, a phone would fill with states that no user opens again.
        var bytesMax = 1_000_000
        /// A larger state would displace the states of all other stores.
        var entryBytesMax = 262_144
        /// All states are read at the start, before the first request.
        var entriesMax = 100
        /// Writes wait until changes have rested for this long…
        var restMilliseconds = 500
        /// … or have continued for this long.
        var restMillisecondsMax = 5000
    }

    /// A kept state.
    struct Entry: Sendable, Hashable, Codable {
        let bytes: Int
        /// Time of its last write, in milliseconds since 1970.
        let at: Int
    }

    enum Input: Sendable {
        /// The entries on the device, by the name of their store.
        case loaded([String: Entry])
        case changed(String)
        case timer
        /// Write now.
        case flush
        /// The sizes of the measured states in bytes; 0 if there is nothing to keep.
        case sized([String: Int])
        /// The user signed out.
        case forget
    }

    enum Action: Sendable, Hashable {
        case timer(at: Int?)
        case measure([String])
        case write([String], remove: [String], entries: [String: Entry])
    }

    private(set) var entries: [String: Entry] = [:]
    private var changed: Set<String> = []
    private var firstAt: Int?
    private let limits: Limits

    init(limits: Limits = Limits()) { self.limits = limits }

    mutating func receive(_ input: Input, now: Int) -> [Action] {
        switch input {
        case .loaded(let entries): self.entries = entries
        case .changed(let name):
            changed.insert(name)
            let first = firstAt ?? now
            firstAt = first
            return [.timer(at: min(now + limits.restMilliseconds, first + limits.restMillisecondsMax))]
        case .timer, .flush:
            guard !changed.isEmpty else { break }
            defer { (changed, firstAt) = ([], nil) }
            return [.timer(at: nil), .measure(changed.sorted())]
        case .sized(let sizes): return [write(sizes, now)]
        case .forget:
            self = OfflineMachine(limits: limits)
            return [.timer(at: nil)]
        }
        return []
    }

    /// Writes the states that fit, and removes the oldest ones beyond the limits.
    private mutating func write(_ sizes: [String: Int], _ now: Int) -> Action {
        let measured = sizes.filter { $0.value > 0 && $0.value <= limits.entryBytesMax }
        let others = entries.filter { sizes[$0.key] == nil }
        let all = others.merging(measured.mapValues { Entry(bytes: $0, at: now) }) { _, new in new }
        var kept: [String: Entry] = [:]
        var bytes = 0
        let newestFirst = all.sorted { ($1.value.at, $0.key) < ($0.value.at, $1.key) }
        for (name, entry) in newestFirst.prefix(limits.entriesMax) {
            bytes += entry.bytes
            if bytes <= limits.bytesMax { kept[name] = entry }
        }
        let removed = entries.keys.filter { kept[$0] == nil }.sorted()
        entries = kept
        return .write(measured.keys.filter { kept[$0] != nil }.sorted(), remove: removed, entries: kept)
    }
}

extension OfflineMachine: Encodable {
    private enum CodingKeys: CodingKey { case entries, changed }
}

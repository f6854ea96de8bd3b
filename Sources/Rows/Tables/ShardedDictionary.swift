/// A dictionary in many parts, so that a copy of a large one is cheap. A change copies only the part that contains the
/// key.
///
/// Each transaction works on a copy of the memberships, and discards it.
struct ShardedDictionary<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// With 1,000,000 entries, a part has 1,000; copying one takes some 10 µs.
    private static var shardCount: Int { 1024 }

    private var shards: [[Key: Value]]
    private(set) var count = 0

    init() {
        shards = Array(repeating: [:], count: Self.shardCount)
    }

    subscript(key: Key) -> Value? {
        get { shards[Self.shard(of: key)][key] }
        set {
            let shard = Self.shard(of: key)
            let before = shards[shard].count
            shards[shard][key] = newValue
            count += shards[shard].count - before
        }
    }

    /// Changes a value in place, without copying it.
    mutating func update(_ key: Key, default fallback: @autoclosure () -> Value, _ change: (inout Value) -> Void) {
        let shard = Self.shard(of: key)
        let before = shards[shard].count
        change(&shards[shard][key, default: fallback()])
        count += shards[shard].count - before
    }

    var values: some Sequence<Value> { shards.lazy.flatMap(\.values) }

    private static func shard(of key: Key) -> Int {
        Int(truncatingIfNeeded: UInt(bitPattern: key.hashValue) % UInt(shardCount))
    }
}

/// The user ids of a leaderboard, each with a small number: its slot.
///
/// All ids are stored in one byte array and found through an open-addressing hash table of slots. A dictionary of
/// strings takes twice the memory. A slot is never freed, just as the row of a user whose score was withdrawn is kept.
struct UserTable: Sendable {
    private var text: [UInt8] = []
    /// The end offset of each slot's id.
    private var ends: [UInt32] = []
    /// The slots plus one, by the hash of their id; 0 marks a free bucket. The size is a power of two.
    private var buckets = [UInt32](repeating: 0, count: 16)

    var count: Int { ends.count }
    /// The memory of the three arrays, in bytes.
    var bytes: Int { text.capacity + (ends.capacity + buckets.capacity) * 4 }

    mutating func reserve(_ countMax: Int) {
        ends.reserveCapacity(countMax)
        var capacity = buckets.count
        while capacity * 3 < countMax * 4 { capacity *= 2 }
        if capacity > buckets.count { rehash(capacity) }
    }

    subscript(slot: UInt32) -> String { String(decoding: text[range(of: slot)], as: UTF8.self) }

    func find(_ user: String) -> UInt32? {
        var user = user
        return user.withUTF8 { bytes in
            let bucket = buckets[place(of: bytes)]
            return bucket == 0 ? nil : bucket - 1
        }
    }

    /// Returns the slot of a user, and creates it if necessary.
    mutating func slot(of user: String) -> UInt32 {
        var user = user
        return user.withUTF8 { bytes in
            let place = place(of: bytes)
            if buckets[place] != 0 { return buckets[place] - 1 }
            let slot = UInt32(ends.count)
            text.append(contentsOf: bytes)
            ends.append(UInt32(text.count))
            buckets[place] = slot + 1
            if ends.count * 4 > buckets.count * 3 { rehash(buckets.count * 2) }
            return slot
        }
    }

    private func range(of slot: UInt32) -> Range<Int> {
        (slot == 0 ? 0 : Int(ends[Int(slot) - 1]))..<Int(ends[Int(slot)])
    }

    /// Returns the bucket of an id, or the free bucket where the id belongs.
    private func place(of id: UnsafeBufferPointer<UInt8>) -> Int {
        let mask = buckets.count - 1
        var place = Self.hash(UnsafeRawBufferPointer(id)) & mask
        while buckets[place] != 0 {
            let range = range(of: buckets[place] - 1)
            if range.count == id.count, text[range].elementsEqual(id) { return place }
            place = (place + 1) & mask
        }
        return place
    }

    private mutating func rehash(_ capacity: Int) {
        var fresh = [UInt32](repeating: 0, count: capacity)
        text.withUnsafeBytes { bytes in
            for slot in 0..<UInt32(ends.count) {
                var place = Self.hash(UnsafeRawBufferPointer(rebasing: bytes[range(of: slot)])) & (capacity - 1)
                while fresh[place] != 0 { place = (place + 1) & (capacity - 1) }
                fresh[place] = slot + 1
            }
        }
        buckets = fresh
    }

    /// Returns a hash that is seeded per process, so that a client cannot choose ids that collide.
    private static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: bytes)
        return hasher.finalize()
    }
}

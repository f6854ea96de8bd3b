/// A hash table from 64-bit hashes to subscriptions. Several subscriptions may share a hash.
///
/// It stores 40 bits of each hash and no keys: 8 bytes per slot, 12 to 20 bytes per key at its usual load, and one
/// cache line per lookup. Two keys may share their bits (one in a million, among a million keys). Matches are evaluated
/// anyway, so a collision costs an evaluation and never gives a wrong answer.
///
/// It is divided into parts by the upper bits of the hash, and each part grows on its own. A part doubles in the time
/// of a few thousand insertions. A single table of millions would delay every event while it is copied.
struct KeyBuckets {
    private var parts = [Part](repeating: Part(), count: 1 << Self.partBits)
    private static let partBits: UInt64 = 8

    private static func part(of hash: UInt64) -> Int { Int(truncatingIfNeeded: hash >> (64 - partBits)) }

    mutating func insert(_ subscription: Int32, under hash: UInt64) {
        parts[Self.part(of: hash)].insert(subscription, under: Slot.fragment(of: hash))
    }

    mutating func remove(_ subscription: Int32, under hash: UInt64) {
        parts[Self.part(of: hash)].remove(subscription, under: Slot.fragment(of: hash))
    }

    /// Returns the number of subscriptions under the hash.
    func count(under hash: UInt64) -> Int { parts[Self.part(of: hash)].count(under: Slot.fragment(of: hash)) }

    func append(under hash: UInt64, to subscriptions: inout [Int32]) {
        parts[Self.part(of: hash)].append(under: Slot.fragment(of: hash), to: &subscriptions)
    }

    /// The reserved bytes of all tables and lists.
    var byteCount: Int { parts.reduce(0) { $0 + $1.byteCount } }

    /// One slot of a table: 32 bits of the hash, never 0, and a reference.
    private struct Slot {
        static let empty = Slot(fragment: 0, reference: 0)
        let fragment: UInt32
        /// A subscription's number, or −1 − n for the list n of several subscriptions.
        var reference: Int32

        static func fragment(of hash: UInt64) -> UInt32 { max(1, UInt32(truncatingIfNeeded: hash)) }

        var isEmpty: Bool { fragment == 0 }
        /// The number of the list, if there is one.
        var list: Int? { reference < 0 ? Int(-1 - reference) : nil }
    }

    private struct Part {
        /// Linear probing. A removal moves the following entries back, so no slot is lost.
        private var slots: [Slot] = []
        private var taken = 0
        private var lists: [[Int32]] = []
        private var freeLists: [Int32] = []

        private func find(_ fragment: UInt32) -> Int? {
            guard !slots.isEmpty else { return nil }
            let mask = slots.count - 1
            var index = Int(fragment) & mask
            while !slots[index].isEmpty {
                if slots[index].fragment == fragment { return index }
                index = (index + 1) & mask
            }
            return nil
        }

        mutating func insert(_ subscription: Int32, under fragment: UInt32) {
            if let index = find(fragment) {
                append(subscription, at: index)
                return
            }
            if (taken + 1) * 5 > slots.count * 4 { resize(to: max(8, slots.count * 2)) }
            set(Slot(fragment: fragment, reference: subscription))
            taken += 1
        }

        private mutating func set(_ slot: Slot) {
            let mask = slots.count - 1
            var index = Int(slot.fragment) & mask
            while !slots[index].isEmpty { index = (index + 1) & mask }
            slots[index] = slot
        }

        private mutating func append(_ subscription: Int32, at index: Int) {
            if let list = slots[index].list {
                lists[list].append(subscription)
                return
            }
            let list = [slots[index].reference, subscription]
            if let free = freeLists.popLast() {
                lists[Int(free)] = list
                slots[index].reference = -1 - free
            } else {
                slots[index].reference = -1 - Int32(lists.count)
                lists.append(list)
            }
        }

        mutating func remove(_ subscription: Int32, under fragment: UInt32) {
            guard let index = find(fragment) else { return }
            guard let list = slots[index].list else {
                if slots[index].reference == subscription { erase(index) }
                return
            }
            guard let member = lists[list].firstIndex(of: subscription) else { return }
            lists[list].swapAt(member, lists[list].count - 1)
            lists[list].removeLast()
            guard lists[list].count == 1 else { return }
            slots[index].reference = lists[list][0]
            lists[list] = []
            freeLists.append(Int32(list))
            if freeLists.count == lists.count {
                lists = []
                freeLists = []
            }
        }

        private mutating func erase(_ removed: Int) {
            let mask = slots.count - 1
            var hole = removed
            var index = (hole + 1) & mask
            while !slots[index].isEmpty {
                let home = Int(slots[index].fragment) & mask
                // It may move into the hole unless its home lies between the hole and its slot.
                if (index - home) & mask >= (index - hole) & mask {
                    slots[hole] = slots[index]
                    hole = index
                }
                index = (index + 1) & mask
            }
            slots[hole] = .empty
            taken -= 1
            if taken == 0 {
                resize(to: 0)
            } else if slots.count > 8, taken * 6 < slots.count {
                resize(to: slots.count / 2)
            }
        }

        private mutating func resize(to capacity: Int) {
            let old = slots
            slots = Array(repeating: .empty, count: capacity)
            for slot in old where !slot.isEmpty { set(slot) }
        }

        func count(under fragment: UInt32) -> Int {
            guard let index = find(fragment) else { return 0 }
            return slots[index].list.map { lists[$0].count } ?? 1
        }

        func append(under fragment: UInt32, to subscriptions: inout [Int32]) {
            guard let index = find(fragment) else { return }
            if let list = slots[index].list {
                subscriptions += lists[list]
            } else {
                subscriptions.append(slots[index].reference)
            }
        }

        var byteCount: Int {
            slots.capacity * 8 + lists.capacity * 8 + freeLists.capacity * 4
                + lists.reduce(0) { $0 + ($1.capacity > 0 ? 32 + $1.capacity * 4 : 0) }
        }
    }
}

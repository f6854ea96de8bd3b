import Values

/// The order of a leaderboard: sorted blocks of slots, and a Fenwick tree of their sizes. Finding the place of an
/// entry, or the entry at a place, takes logarithmic time.
///
/// Blocks store four bytes per entry. The sort keys are looked up in the leaderboard's array of standings, which is
/// passed to every call. Storing the keys in the blocks too would take four times the memory.
struct StandingOrder: Sendable {
    static let blockMax = 256
    /// A block smaller than this is merged with a neighbour. Merged blocks keep free room; otherwise the next insertion
    /// would split them again.
    private static let blockMin = blockMax / 4
    private static let joinedMax = blockMax * 3 / 4

    private var blocks: [[UInt32]] = [[]]
    /// The lower bound of each block: its standings are at or after its own bound, and before the next. The first bound
    /// is never read.
    private var bounds: [Standing] = [.none]
    /// The Fenwick tree, indexed from 1. Element `i` counts the entries of the last `i & -i` blocks up to block `i`.
    private var sums: [Int32] = [0, 0]
    private(set) var count = 0

    init() {}

    /// Creates the order from sorted slots. Blocks are three quarters full, so that the first insertions find room.
    init(sorted slots: Range<UInt32>, _ standings: [Standing]) {
        guard !slots.isEmpty else { return }
        (blocks, bounds, count) = ([], [], slots.count)
        for first in stride(from: slots.lowerBound, to: slots.upperBound, by: Self.joinedMax) {
            let end = min(first + UInt32(Self.joinedMax), slots.upperBound)
            blocks.append(Self.block(of: first..<end))
            bounds.append(standings[Int(first)])
        }
        recount()
    }

    /// Returns a block with reserved capacity for its maximum size. A growing array would double its capacity instead.
    private static func block(of slots: some Collection<UInt32>) -> [UInt32] {
        var block: [UInt32] = []
        block.reserveCapacity(blockMax)
        block.append(contentsOf: slots)
        return block
    }

    /// The memory of the order, in bytes.
    var bytes: Int {
        // A block has a header of 32 bytes, and a pointer to it takes 8.
        blocks.reduce(0) { $0 + 40 + $1.capacity * 4 } + bounds.capacity * MemoryLayout<Standing>.stride
            + sums.capacity * 4
    }

    // MARK: Finding

    /// Returns how many standings are before a bound.
    func count(before bound: Standing, _ standings: [Standing]) -> Int {
        let block = block(for: bound)
        var (before, node) = (Self.index(of: bound, in: blocks[block], standings), block)
        while node > 0 {
            before += Int(sums[node])
            node &= node - 1
        }
        return before
    }

    /// Calls the body with the slots at the given indices, in order.
    func forEach(in range: Range<Int>, _ body: (UInt32) -> Void) {
        var (block, skipped) = find(range.lowerBound)
        var wanted = range.count
        while wanted > 0 {
            for slot in blocks[block].dropFirst(skipped).prefix(wanted) {
                body(slot)
                wanted -= 1
            }
            (block, skipped) = (block + 1, 0)
        }
    }

    /// Returns the block that contains the entry at an index, and the entry's index within the block.
    private func find(_ index: Int) -> (block: Int, index: Int) {
        var (block, rest) = (0, Int32(index))
        var step = 1 << (Int.bitWidth - 1 - blocks.count.leadingZeroBitCount)
        while step > 0 {
            if block + step <= blocks.count, sums[block + step] <= rest {
                block += step
                rest -= sums[block]
            }
            step /= 2
        }
        return (block, Int(rest))
    }

    /// Returns the last block whose bound is at or before the standing.
    private func block(for standing: Standing) -> Int {
        (1..<bounds.count).partitioningIndex { bounds[$0] > standing } - 1
    }

    private static func index(of bound: Standing, in slots: [UInt32], _ standings: [Standing]) -> Int {
        slots.partitioningIndex { standings[Int($0)] >= bound }
    }

    // MARK: Changing

    /// Inserts a slot by its standing, which no other slot has.
    mutating func insert(_ slot: UInt32, _ standings: [Standing]) {
        let standing = standings[Int(slot)]
        let block = block(for: standing)
        let index = Self.index(of: standing, in: blocks[block], standings)
        count += 1
        guard blocks[block].count == Self.blockMax else {
            blocks[block].insert(slot, at: index)
            return add(1, to: block)
        }
        // Splitting at the end leaves full blocks behind when entries arrive in order.
        let half = index == Self.blockMax ? Self.blockMax : Self.blockMax / 2
        var right = Self.block(of: blocks[block][half...])
        blocks[block].removeSubrange(half...)
        if index < half { blocks[block].insert(slot, at: index) } else { right.insert(slot, at: index - half) }
        bounds.insert(standings[Int(right[0])], at: block + 1)
        blocks.insert(right, at: block + 1)
        recount()
    }

    /// Removes the entry with a standing. The entry must exist.
    mutating func remove(_ standing: Standing, _ standings: [Standing]) {
        let block = block(for: standing)
        let index = Self.index(of: standing, in: blocks[block], standings)
        precondition(
            index < blocks[block].count && standings[Int(blocks[block][index])] == standing,
            "an entry is removed from the place where it was inserted")
        blocks[block].remove(at: index)
        count -= 1
        if !mergeIfSmall(block) { add(-1, to: block) }
    }

    /// Merges a small block with a neighbour. Otherwise a leaderboard whose scores keep rising would leave a trail of
    /// blocks with one entry each.
    private mutating func mergeIfSmall(_ block: Int) -> Bool {
        let size = blocks[block].count
        guard size < Self.blockMin, blocks.count > 1 else { return false }
        for left in [block - 1, block] where blocks.indices.contains(left) && blocks.indices.contains(left + 1) {
            guard blocks[left].count + blocks[left + 1].count <= Self.joinedMax else { continue }
            blocks[left] += blocks[left + 1]
            detach(left + 1)
            return true
        }
        // Both neighbours are full, so only an empty block is removed.
        if size == 0 { detach(block) }
        return size == 0
    }

    private mutating func detach(_ block: Int) {
        blocks.remove(at: block)
        bounds.remove(at: block)
        recount()
    }

    private mutating func add(_ change: Int32, to block: Int) {
        var node = block + 1
        while node < sums.count {
            sums[node] += change
            node += node & -node
        }
    }

    /// Rebuilds the tree after a block was split or merged, which is rare.
    private mutating func recount() {
        sums.removeAll(keepingCapacity: true)
        sums.append(0)
        for block in blocks { sums.append(Int32(block.count)) }
        for node in 1..<sums.count {
            let next = node + (node & -node)
            if next < sums.count { sums[next] += sums[node] }
        }
    }

    // MARK: Soundness

    /// Returns a description of an inconsistency, for tests and audits; nil if the structure is sound.
    func damage(_ standings: [Standing]) -> String? {
        let slots = blocks.joined()
        guard slots.count == count else { return "\(slots.count) entries, but the count is \(count)" }
        for (left, right) in zip(slots, slots.dropFirst()) where standings[Int(left)] >= standings[Int(right)] {
            return "slots \(left) and \(right) are in the wrong order"
        }
        for (block, slots) in blocks.enumerated() {
            guard slots.count <= Self.blockMax else { return "a block has \(slots.count) entries" }
            guard let slot = slots.first else {
                if blocks.count > 1 { return "a block of several is empty" }
                continue
            }
            let standing = standings[Int(slot)]
            if self.block(for: standing) != block { return "slot \(slot) is outside the bounds of its block" }
            guard find(count(before: standing, standings)) == (block, 0) else {
                return "slot \(slot) is not at its counted position"
            }
        }
        return nil
    }
}

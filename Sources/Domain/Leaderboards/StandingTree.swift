/// The order of a board: a B+ tree of slots that counts what lies below each of its branches, so that the place of an
/// entry and the entry of a place are found on one way from the root.
///
/// Leaves hold four bytes an entry. What they are ordered by is looked up in the board's array of standings, which every
/// call is given: kept in the leaves too, it would take four times their memory.
struct StandingTree: Sendable {
    private struct Leaf {
        var slots: [UInt32]
    }

    private struct Branch {
        var children: [Int32]
        /// Entries below each child.
        var counts: [Int32]
        /// All below a child stand at its bound or behind it, and before the next one's. The first one's is not asked.
        var bounds: [Standing]
    }

    /// A node that was split off, to stand behind its left part.
    private struct Split {
        let bound: Standing
        let node: Int32
        let count: Int
    }

    static let leafMax = 128
    static let branchMax = 64
    /// A node below this looks for a neighbour to join; joined they leave room, or the next entry would split them.
    private static let leafMin = leafMax / 4
    private static let leafJoinedMax = leafMax * 3 / 4
    private static let branchMin = branchMax / 4
    private static let branchJoinedMax = branchMax * 3 / 4

    private var leaves: [Leaf] = [Leaf(slots: [])]
    private var freeLeaves: [Int32] = []
    private var branches: [Branch] = []
    private var freeBranches: [Int32] = []
    private var root: Int32 = 0
    /// Branches on the way from the root to a leaf.
    private var height = 0
    private(set) var count = 0

    init() {}

    /// Of slots in their order: leaves three quarters full, so that the first changes find room.
    init(sorted slots: some RandomAccessCollection<UInt32>, _ standings: [Standing]) {
        guard !slots.isEmpty else { return }
        leaves = []
        var level: [Split] = []
        var rest = slots[...]
        while !rest.isEmpty {
            let part = rest.prefix(Self.leafJoinedMax)
            rest = rest.dropFirst(part.count)
            level.append(
                Split(bound: standings[Int(part.first ?? 0)], node: Int32(leaves.count), count: part.count))
            var leaf: [UInt32] = []
            leaf.reserveCapacity(Self.leafMax)
            leaf.append(contentsOf: part)
            leaves.append(Leaf(slots: leaf))
        }
        while level.count > 1 {
            var above: [Split] = []
            for start in stride(from: 0, to: level.count, by: Self.branchJoinedMax) {
                let part = level[start..<min(start + Self.branchJoinedMax, level.count)]
                above.append(
                    Split(
                        bound: level[start].bound, node: Int32(branches.count), count: part.reduce(0) { $0 + $1.count })
                )
                branches.append(
                    Branch(
                        children: part.map(\.node), counts: part.map { Int32($0.count) }, bounds: part.map(\.bound)))
            }
            level = above
            height += 1
        }
        root = level[0].node
        count = slots.count
    }

    /// Memory of the nodes.
    var bytes: Int {
        // Arrays have a header of 32 bytes, and stand in one of eight.
        leaves.reduce(0) { $0 + 40 + $1.slots.capacity * 4 }
            + branches.reduce(0) { $0 + 120 + $1.children.capacity * 24 }
    }

    // MARK: Finding

    /// How many stand before a bound.
    func count(before bound: Standing, _ standings: [Standing]) -> Int {
        var (node, before) = (Int(root), 0)
        for _ in 0..<height {
            let child = Self.child(of: branches[node], for: bound)
            for index in 0..<child { before += Int(branches[node].counts[index]) }
            node = Int(branches[node].children[child])
        }
        return before + Self.index(of: bound, in: leaves[node].slots, standings)
    }

    /// Calls the body with the slots at the given indices, in order.
    func forEach(in range: Range<Int>, _ body: (UInt32) -> Void) {
        var (skipped, wanted) = (range.lowerBound, range.count)
        visit(root, height, &skipped, &wanted, body)
    }

    private func visit(
        _ node: Int32, _ height: Int, _ skipped: inout Int, _ wanted: inout Int, _ body: (UInt32) -> Void
    ) {
        guard height > 0 else {
            for slot in leaves[Int(node)].slots.dropFirst(skipped).prefix(wanted) {
                body(slot)
                wanted -= 1
            }
            skipped = 0
            return
        }
        for (index, child) in branches[Int(node)].children.enumerated() {
            let count = Int(branches[Int(node)].counts[index])
            if skipped >= count {
                skipped -= count
            } else {
                visit(child, height - 1, &skipped, &wanted, body)
                if wanted == 0 { return }
            }
        }
    }

    /// The last child whose bound is not behind what is looked for.
    private static func child(of branch: Branch, for standing: Standing) -> Int {
        var (low, high) = (1, branch.bounds.count)
        while low < high {
            let middle = (low + high) / 2
            if branch.bounds[middle] <= standing { low = middle + 1 } else { high = middle }
        }
        return low - 1
    }

    private static func index(of bound: Standing, in slots: [UInt32], _ standings: [Standing]) -> Int {
        var (low, high) = (0, slots.count)
        while low < high {
            let middle = (low + high) / 2
            if standings[Int(slots[middle])] < bound { low = middle + 1 } else { high = middle }
        }
        return low
    }

    // MARK: Adding

    /// Adds a slot by its standing, which nobody else has.
    mutating func insert(_ slot: UInt32, _ standings: [Standing]) {
        let old = (root: root, count: count)
        count += 1
        guard let split = insert(slot, standings[Int(slot)], into: root, height, standings) else { return }
        root = makeBranch(
            Branch(
                children: [old.root, split.node], counts: [Int32(count - split.count), Int32(split.count)],
                bounds: [.none, split.bound]))
        height += 1
    }

    private mutating func insert(
        _ slot: UInt32, _ standing: Standing, into node: Int32, _ height: Int, _ standings: [Standing]
    ) -> Split? {
        let node = Int(node)
        guard height > 0 else { return insert(slot, standing, intoLeaf: node, standings) }
        let index = Self.child(of: branches[node], for: standing)
        branches[node].counts[index] += 1
        let child = branches[node].children[index]
        guard let split = insert(slot, standing, into: child, height - 1, standings) else { return nil }
        branches[node].counts[index] -= Int32(split.count)
        branches[node].children.insert(split.node, at: index + 1)
        branches[node].counts.insert(Int32(split.count), at: index + 1)
        branches[node].bounds.insert(split.bound, at: index + 1)
        guard branches[node].children.count > Self.branchMax else { return nil }
        let half = Self.branchMax / 2
        let right = Branch(
            children: Array(branches[node].children[half...]), counts: Array(branches[node].counts[half...]),
            bounds: Array(branches[node].bounds[half...]))
        branches[node].children.removeSubrange(half...)
        branches[node].counts.removeSubrange(half...)
        branches[node].bounds.removeSubrange(half...)
        return Split(
            bound: right.bounds[0], node: makeBranch(right), count: right.counts.reduce(0) { $0 + Int($1) })
    }

    private mutating func insert(
        _ slot: UInt32, _ standing: Standing, intoLeaf leaf: Int, _ standings: [Standing]
    ) -> Split? {
        let index = Self.index(of: standing, in: leaves[leaf].slots, standings)
        guard leaves[leaf].slots.count == Self.leafMax else {
            leaves[leaf].slots.insert(slot, at: index)
            return nil
        }
        // Entries that come in their order leave full leaves behind.
        let half = index == Self.leafMax ? Self.leafMax : Self.leafMax / 2
        var right: [UInt32] = []
        right.reserveCapacity(Self.leafMax)
        right.append(contentsOf: leaves[leaf].slots[half...])
        leaves[leaf].slots.removeSubrange(half...)
        if index < half { leaves[leaf].slots.insert(slot, at: index) } else { right.insert(slot, at: index - half) }
        let (bound, count) = (standings[Int(right[0])], right.count)
        return Split(bound: bound, node: makeLeaf(Leaf(slots: right)), count: count)
    }

    private mutating func makeLeaf(_ leaf: Leaf) -> Int32 {
        guard let free = freeLeaves.popLast() else {
            leaves.append(leaf)
            return Int32(leaves.count - 1)
        }
        leaves[Int(free)] = leaf
        return free
    }

    private mutating func makeBranch(_ branch: Branch) -> Int32 {
        guard let free = freeBranches.popLast() else {
            branches.append(branch)
            return Int32(branches.count - 1)
        }
        branches[Int(free)] = branch
        return free
    }

    // MARK: Removing

    /// Takes out the entry with a standing, which must be there.
    mutating func remove(_ standing: Standing, _ standings: [Standing]) {
        remove(standing, from: root, height, standings)
        count -= 1
        while height > 0, branches[Int(root)].children.count == 1 {
            let child = branches[Int(root)].children[0]
            freeBranch(root)
            root = child
            height -= 1
        }
    }

    private mutating func remove(_ standing: Standing, from node: Int32, _ height: Int, _ standings: [Standing]) {
        let node = Int(node)
        guard height > 0 else {
            let index = Self.index(of: standing, in: leaves[node].slots, standings)
            precondition(
                index < leaves[node].slots.count && standings[Int(leaves[node].slots[index])] == standing,
                "an entry is taken out where it was put")
            leaves[node].slots.remove(at: index)
            return
        }
        let index = Self.child(of: branches[node], for: standing)
        remove(standing, from: branches[node].children[index], height - 1, standings)
        branches[node].counts[index] -= 1
        joinIfSmall(index, of: node, height)
    }

    /// Without joining, a board whose scores move on would leave a trail of leaves with one entry each.
    private mutating func joinIfSmall(_ index: Int, of node: Int, _ height: Int) {
        let isLeaf = height == 1
        let size = self.size(of: branches[node].children[index], isLeaf)
        guard size < (isLeaf ? Self.leafMin : Self.branchMin) else { return }
        let joinedMax = isLeaf ? Self.leafJoinedMax : Self.branchJoinedMax
        let count = branches[node].children.count
        for left in [index - 1, index] where left >= 0 && left + 1 < count {
            let (first, second) = (branches[node].children[left], branches[node].children[left + 1])
            guard self.size(of: first, isLeaf) + self.size(of: second, isLeaf) <= joinedMax else { continue }
            join(second, to: first, bound: branches[node].bounds[left + 1], isLeaf)
            branches[node].counts[left] += branches[node].counts[left + 1]
            detach(left + 1, of: node)
            return
        }
        // Between two that are full: an empty one goes by itself.
        if size == 0, count > 1 {
            let empty = branches[node].children[index]
            if isLeaf { freeLeaf(empty) } else { freeBranch(empty) }
            detach(index, of: node)
        }
    }

    private func size(of node: Int32, _ isLeaf: Bool) -> Int {
        isLeaf ? leaves[Int(node)].slots.count : branches[Int(node)].children.count
    }

    private mutating func join(_ right: Int32, to left: Int32, bound: Standing, _ isLeaf: Bool) {
        guard isLeaf else {
            var taken = branches[Int(right)]
            freeBranch(right)
            // Its first bound was not asked while it stood first.
            if !taken.bounds.isEmpty { taken.bounds[0] = bound }
            branches[Int(left)].children += taken.children
            branches[Int(left)].counts += taken.counts
            branches[Int(left)].bounds += taken.bounds
            return
        }
        let taken = leaves[Int(right)].slots
        freeLeaf(right)
        leaves[Int(left)].slots += taken
    }

    private mutating func detach(_ index: Int, of node: Int) {
        branches[node].children.remove(at: index)
        branches[node].counts.remove(at: index)
        branches[node].bounds.remove(at: index)
    }

    private mutating func freeLeaf(_ node: Int32) {
        leaves[Int(node)] = Leaf(slots: [])
        freeLeaves.append(node)
    }

    private mutating func freeBranch(_ node: Int32) {
        branches[Int(node)] = Branch(children: [], counts: [], bounds: [])
        freeBranches.append(node)
    }

    // MARK: Soundness

    /// What is wrong with the tree, for tests; nil for nothing.
    func damage(_ standings: [Standing]) -> String? {
        var slots: [UInt32] = []
        forEach(in: 0..<count) { slots.append($0) }
        guard slots.count == count else { return "\(slots.count) entries where \(count) are counted" }
        for (left, right) in zip(slots, slots.dropFirst()) where standings[Int(left)] >= standings[Int(right)] {
            return "slots \(left) and \(right) stand in the wrong order"
        }
        let (found, problem) = countBelow(root, height)
        if let problem { return problem }
        return found == count ? nil : "\(found) entries below a root that counts \(count)"
    }

    private func countBelow(_ node: Int32, _ height: Int) -> (Int, String?) {
        guard height > 0 else {
            let size = leaves[Int(node)].slots.count
            return (size, size <= Self.leafMax ? nil : "a leaf has \(size) entries")
        }
        let branch = branches[Int(node)]
        guard branch.children.count <= Self.branchMax, !branch.children.isEmpty else {
            return (0, "a branch has \(branch.children.count) children")
        }
        var sum = 0
        for (index, child) in branch.children.enumerated() {
            let (found, problem) = countBelow(child, height - 1)
            if let problem { return (0, problem) }
            guard found == Int(branch.counts[index]) else {
                return (0, "\(found) entries where \(branch.counts[index]) are counted")
            }
            sum += found
        }
        return (sum, nil)
    }
}

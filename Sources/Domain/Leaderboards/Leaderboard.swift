/// The order of a challenge's entries in memory: who stands where, in a time that grows with the logarithm of their
/// number.
///
/// Some 40 bytes an entry and its id: 16 its standing, 6 its place in the tree, the others to find it by its id, and room
/// to grow.
public struct Leaderboard: Sendable {
    /// One line of a board.
    public struct Entry: Sendable, Hashable {
        public let userId: ID<User>
        public let standing: Standing
        public let place: Place

        public init(userId: ID<User>, standing: Standing, place: Place) {
            self.userId = userId
            self.standing = standing
            self.place = place
        }
    }

    private var users = UserTable()
    /// By slot; `.none` for those who have no score.
    private var standings: [Standing] = []
    private var tree = StandingTree()
    private var movement = Movement()

    public init() {}

    /// Of entries in their order, best first, and no user twice.
    public init(sorted entries: some Sequence<(userId: ID<User>, standing: Standing)>, countMax: Int = 0) {
        var builder = Builder(countMax: countMax)
        for entry in entries { builder.append(entry.userId, entry.standing) }
        self = builder.finish()
    }

    /// Takes entries in their order, best first, and no user twice.
    public struct Builder {
        private var board = Leaderboard()

        /// - Parameter countMax: about how many will come.
        public init(countMax: Int) {
            board.users.reserve(countMax)
            board.standings.reserveCapacity(countMax)
        }

        public mutating func append(_ user: ID<User>, _ standing: Standing) {
            let slot = board.users.slot(of: user.text)
            precondition(Int(slot) == board.standings.count, "a user stands on a board once")
            precondition(board.standings.last.map { $0 < standing } ?? true, "the best come first")
            board.standings.append(standing)
        }

        public consuming func finish() -> Leaderboard {
            board.tree = StandingTree(sorted: 0..<UInt32(board.standings.count), board.standings)
            return board
        }
    }

    /// Entries with a score.
    public var count: Int { tree.count }
    /// Memory of the whole.
    public var bytes: Int { users.bytes + standings.capacity * MemoryLayout<Standing>.stride + tree.bytes }

    // MARK: Changing

    /// Puts a user where a standing belongs, or takes them off the board.
    ///
    /// - Returns: where the user stood before.
    @discardableResult
    public mutating func set(_ standing: Standing?, of user: ID<User>) -> Standing? {
        guard standing != nil || users.find(user.text) != nil else { return nil }
        let slot = users.slot(of: user.text)
        if Int(slot) == standings.count { standings.append(.none) }
        let before = standings[Int(slot)]
        guard before != standing ?? .none else { return present(before) }
        movement.note(slot, before)
        if before != .none { tree.remove(before, standings) }
        standings[Int(slot)] = standing ?? .none
        if standing != nil { tree.insert(slot, standings) }
        return present(before)
    }

    private func present(_ standing: Standing) -> Standing? { standing == .none ? nil : standing }

    // MARK: Asking

    public func standing(of user: ID<User>) -> Standing? {
        users.find(user.text).flatMap { present(standings[Int($0)]) }
    }

    /// The place of a standing, whether anybody has it or not.
    public func place(of standing: Standing) -> Place {
        Place(
            rank: tree.count(before: standing.best, standings) + 1,
            position: tree.count(before: standing, standings) + 1)
    }

    public func entry(of user: ID<User>) -> Entry? {
        standing(of: user).map { Entry(userId: user, standing: $0, place: place(of: $0)) }
    }

    /// The entries at the given indices, counted from 0, as far as there are any.
    public func entries(in range: Range<Int>) -> [Entry] {
        let range = range.clamped(to: 0..<count)
        var entries: [Entry] = []
        entries.reserveCapacity(range.count)
        tree.forEach(in: range) { slot in
            let standing = standings[Int(slot)]
            let position = range.lowerBound + entries.count + 1
            let rank: Int
            switch entries.last {
            case let last? where last.standing.key == standing.key: rank = last.place.rank
            case .some: rank = position
            case nil: rank = tree.count(before: standing.best, standings) + 1
            }
            entries.append(
                Entry(userId: ID(users[slot]), standing: standing, place: Place(rank: rank, position: position)))
        }
        return entries
    }

    /// A user with so many on each side; empty for one who is not on the board.
    public func entries(around user: ID<User>, _ count: Int) -> [Entry] {
        guard let standing = standing(of: user) else { return [] }
        let index = tree.count(before: standing, standings)
        return entries(in: max(0, index - count)..<(index + count + 1))
    }

    // MARK: What has moved

    /// Whether anything has changed since the movement was last taken.
    public var hasMoved: Bool { !movement.isEmpty }

    /// Everybody counts as moved: nobody knows by what.
    public mutating func noteUnknownMovement() { movement = Movement(isUnknown: true) }

    /// What has changed since it was last taken.
    public mutating func takeMovement() -> Movement {
        movement.after = movement.before.keys.map { standings[Int($0)] }
        defer { movement = Movement() }
        return movement
    }

    /// Where a user stands, if they or their place have moved by the changes; nil for one who has not, or has no score.
    public func entry(of user: ID<User>, movedBy movement: SettledMovement) -> Entry? {
        guard let slot = users.find(user.text), let standing = present(standings[Int(slot)]),
            movement.moves(slot, standing)
        else { return nil }
        return Entry(userId: user, standing: standing, place: place(of: standing))
    }

    /// What is wrong with the structure, for tests; nil for nothing.
    public var damage: String? {
        for slot in 0..<UInt32(users.count) where users.find(users[slot]) != slot { return "slot \(slot) is not found" }
        let present = standings.count { $0 != .none }
        guard present == tree.count else { return "\(present) standings, and \(tree.count) in their order" }
        return tree.damage(standings)
    }
}

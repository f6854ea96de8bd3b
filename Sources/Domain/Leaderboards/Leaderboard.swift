import Values

/// The entries of a challenge in memory, in order. Lookups of a place take time logarithmic in the number of entries.
///
/// An entry takes some 55 bytes plus its id. Its standing takes 16 and its place in the order 6; the rest is for the
/// lookup by id and for growth.
public struct Leaderboard: Sendable {
    /// One line of a leaderboard.
    public struct Entry: Sendable, Hashable {
        public let userId: ID<User>
        public let standing: Standing
        public let place: Place

        public init(userId: ID<User>, standing: Standing, place: Place) {
            self.userId = userId
            self.standing = standing
            self.place = place
        }

        /// Returns the entries of consecutive lines, with their places.
        ///
        /// - Parameter first: The place of the first line.
        public static func entries(
            _ lines: some Sequence<(userId: ID<User>, standing: Standing)>, first: Place
        ) -> [Entry] {
            var entries: [Entry] = []
            for line in lines {
                var place = Place(rank: first.rank, position: first.position + entries.count)
                if let last = entries.last {
                    place.rank = last.standing.key == line.standing.key ? last.place.rank : place.position
                }
                entries.append(Entry(userId: line.userId, standing: line.standing, place: place))
            }
            return entries
        }
    }

    private var users = UserTable()
    /// The standings by slot; `.none` for a user without a score.
    private var standings: [Standing] = []
    private var order = StandingOrder()
    private var movement = Movement()

    public init() {}

    /// Builds a leaderboard from entries that arrive best first, without repeating a user.
    public struct Builder {
        private var board = Leaderboard()

        /// Creates a builder.
        ///
        /// - Parameter countMax: The approximate number of entries to expect.
        public init(countMax: Int) {
            board.users.reserve(countMax)
            board.standings.reserveCapacity(countMax)
        }

        public mutating func append(_ user: ID<User>, _ standing: Standing) {
            let slot = board.users.slot(of: user.text)
            precondition(Int(slot) == board.standings.count, "a user has one place on a leaderboard")
            precondition(board.standings.last.map { $0 < standing } ?? true, "standings are sorted, best first")
            board.standings.append(standing)
        }

        public consuming func finish() -> Leaderboard {
            board.order = StandingOrder(sorted: 0..<UInt32(board.standings.count), board.standings)
            return board
        }
    }

    /// The number of entries with a score.
    public var count: Int { order.count }
    public var bytes: Int { users.bytes + standings.capacity * MemoryLayout<Standing>.stride + order.bytes }

    // MARK: Changing

    /// Sets the standing of a user; nil removes the user from the leaderboard.
    ///
    /// - Returns: The previous standing of the user.
    @discardableResult
    public mutating func set(_ standing: Standing?, of user: ID<User>) -> Standing? {
        guard standing != nil || users.find(user.text) != nil else { return nil }
        let slot = users.slot(of: user.text)
        if Int(slot) == standings.count { standings.append(.none) }
        let before = standings[Int(slot)]
        guard before != standing ?? .none else { return present(before) }
        movement.note(slot, before)
        if before != .none { order.remove(before, standings) }
        standings[Int(slot)] = standing ?? .none
        if standing != nil { order.insert(slot, standings) }
        return present(before)
    }

    private func present(_ standing: Standing) -> Standing? { standing == .none ? nil : standing }

    // MARK: Reading

    public func standing(of user: ID<User>) -> Standing? {
        users.find(user.text).flatMap { present(standings[Int($0)]) }
    }

    /// Returns the place of a standing, whether or not an entry has this standing.
    public func place(of standing: Standing) -> Place {
        Place(
            rank: order.count(before: standing.best, standings) + 1,
            position: order.count(before: standing, standings) + 1)
    }

    public func entry(of user: ID<User>) -> Entry? {
        standing(of: user).map { Entry(userId: user, standing: $0, place: place(of: $0)) }
    }

    /// Returns the entries at the given indices, counted from 0. Indices beyond the end are ignored.
    public func entries(in range: Range<Int>) -> [Entry] {
        var lines: [(userId: ID<User>, standing: Standing)] = []
        order.forEach(in: range.clamped(to: 0..<count)) { lines.append((ID(users[$0]), standings[Int($0)])) }
        return lines.first.map { Entry.entries(lines, first: place(of: $0.standing)) } ?? []
    }

    /// Returns a user's entry with up to `count` entries on each side; empty if the user is not on the leaderboard.
    public func entries(around user: ID<User>, _ count: Int) -> [Entry] {
        guard let standing = standing(of: user) else { return [] }
        let index = order.count(before: standing, standings)
        return entries(in: max(0, index - count)..<(index + count + 1))
    }

    // MARK: Movement

    /// Whether anything has changed since ``takeMovement()`` was last called.
    public var hasMoved: Bool { !movement.isEmpty }

    /// Marks all entries as moved, because the individual changes are unknown.
    public mutating func noteUnknownMovement() { movement = Movement(isUnknown: true) }

    /// Returns the changes since the last call.
    public mutating func takeMovement() -> Movement {
        movement.after = movement.before.keys.map { standings[Int($0)] }
        defer { movement = Movement() }
        return movement
    }

    /// Returns a user's entry if the entry or its place was moved by the changes; nil if it was not, or has no score.
    public func entry(of user: ID<User>, movedBy movement: SettledMovement) -> Entry? {
        guard let slot = users.find(user.text), let standing = present(standings[Int(slot)]),
            movement.moves(slot, standing)
        else { return nil }
        return Entry(userId: user, standing: standing, place: place(of: standing))
    }

    /// A description of an inconsistency in the structure, for tests; nil if it is sound.
    public var damage: String? {
        for slot in 0..<UInt32(users.count) where users.find(users[slot]) != slot { return "slot \(slot) is not found" }
        let present = standings.count { $0 != .none }
        guard present == order.count else { return "\(present) standings, but \(order.count) in their order" }
        return order.damage(standings)
    }
}

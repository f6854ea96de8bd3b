import Rows
import Values

/// The entries of a challenge in memory, in their order: who stands where, in a time that grows with the logarithm of
/// their number.
///
/// Some 55 bytes an entry and its id: 16 its standing, 6 its place in the order, the others to find it by its id, and
/// room to grow.
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

        /// Lines that follow one another, with their places.
        ///
        /// - Parameter first: the place of the first line.
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
    /// By slot; `.none` for those who have no score.
    private var standings: [Standing] = []
    private var order = StandingOrder()
    private var movement = Movement()

    public init() {}

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
            board.order = StandingOrder(sorted: 0..<UInt32(board.standings.count), board.standings)
            return board
        }
    }

    /// Entries with a score.
    public var count: Int { order.count }
    /// Memory of the whole.
    public var bytes: Int { users.bytes + standings.capacity * MemoryLayout<Standing>.stride + order.bytes }

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
        if before != .none { order.remove(before, standings) }
        standings[Int(slot)] = standing ?? .none
        if standing != nil { order.insert(slot, standings) }
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
            rank: order.count(before: standing.best, standings) + 1,
            position: order.count(before: standing, standings) + 1)
    }

    public func entry(of user: ID<User>) -> Entry? {
        standing(of: user).map { Entry(userId: user, standing: $0, place: place(of: $0)) }
    }

    /// The entries at the given indices, counted from 0, as far as there are any.
    public func entries(in range: Range<Int>) -> [Entry] {
        var lines: [(userId: ID<User>, standing: Standing)] = []
        order.forEach(in: range.clamped(to: 0..<count)) { lines.append((ID(users[$0]), standings[Int($0)])) }
        return lines.first.map { Entry.entries(lines, first: place(of: $0.standing)) } ?? []
    }

    /// A user with so many on each side; empty for one who is not on the board.
    public func entries(around user: ID<User>, _ count: Int) -> [Entry] {
        guard let standing = standing(of: user) else { return [] }
        let index = order.count(before: standing, standings)
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
        guard present == order.count else { return "\(present) standings, and \(order.count) in their order" }
        return order.damage(standings)
    }
}

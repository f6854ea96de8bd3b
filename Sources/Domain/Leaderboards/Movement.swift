import Values

/// Changes of a board whose moves are not published yet: where each changed entry stood before the first of them.
public struct Movement: Sendable {
    private(set) var before: [UInt32: Standing] = [:]
    /// Where they stand since, once it is taken.
    var after: [Standing] = []
    /// The board was read anew, or too much has changed: everybody counts as moved.
    public private(set) var isUnknown = false

    init(isUnknown: Bool = false) { self.isUnknown = isUnknown }

    var isEmpty: Bool { before.isEmpty && !isUnknown }

    mutating func note(_ slot: UInt32, _ standing: Standing) {
        guard !isUnknown else { return }
        if before.count >= LeaderboardLimits.movementMax {
            (before, isUnknown) = ([:], true)
        } else if before[slot] == nil {
            before[slot] = standing
        }
    }
}

/// A set of changes, so that whether one of a million entries has moved by them is a few comparisons, and needs no
/// memory of where it stood.
///
/// An entry that did not change itself is moved by those who passed it: its rank by the difference between the better
/// scores after and before, its position likewise.
public struct SettledMovement: Sendable {
    private let changed: Set<UInt32>
    private let before: [Standing]
    private let after: [Standing]
    private let isUnknown: Bool

    public init(_ movement: Movement) {
        changed = Set(movement.before.keys)
        before = movement.before.values.filter { $0 != .none }.sorted()
        after = movement.after.filter { $0 != .none }.sorted()
        isUnknown = movement.isUnknown
    }

    func moves(_ slot: UInt32, _ standing: Standing) -> Bool {
        isUnknown || changed.contains(slot) || Self.count(before, standing.best) != Self.count(after, standing.best)
            || Self.count(before, standing) != Self.count(after, standing)
    }

    /// How many stand before a bound.
    private static func count(_ sorted: [Standing], _ bound: Standing) -> Int {
        sorted.partitioningIndex { $0 >= bound }
    }
}

import Values

/// The unpublished changes of a leaderboard: the standing of each changed entry before its first change.
public struct Movement: Sendable {
    private(set) var before: [UInt32: Standing] = [:]
    /// The standings after the changes, set when the movement is taken.
    var after: [Standing] = []
    /// Whether all entries count as moved, because the leaderboard was reloaded or too much has changed.
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

/// A settled set of changes. A few comparisons decide whether any one of a million entries was moved by them; the
/// earlier place of the entry need not be stored.
///
/// An unchanged entry is moved by the entries that passed it. Its rank moves by the difference between the numbers of
/// better scores before and after the changes; its position moves likewise.
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

    /// Returns the number of standings before a bound.
    private static func count(_ sorted: [Standing], _ bound: Standing) -> Int {
        sorted.partitioningIndex { $0 >= bound }
    }
}

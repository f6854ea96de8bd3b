import Values

@testable import Rows

/// The steps of ``TableDeclaration/routing(of:at:memberships:)``, for tests of single steps.
extension TableDeclaration {
    func reach(of change: RowWrite, memberships: Memberships) throws(Failure) -> Reach {
        try reach(try sides(of: change, memberships), change.operation, memberships)
    }

    func matters(_ change: RowWrite, memberships: Memberships) -> Bool {
        matters(change, completedOld: completedOld(change, memberships))
    }

    func invalidations(of change: RowWrite, memberships: Memberships) throws(Failure) -> [Invalidation] {
        let completedOld = completedOld(change, memberships)
        if !matters(change, completedOld: completedOld) { return [] }
        let sides = try sides(of: change, completedOld: completedOld, memberships)
        return try invalidations(
            of: change, completedOld: completedOld, sides: sides,
            reach: try reach(sides, change.operation, memberships),
            memberships: memberships)
    }
}

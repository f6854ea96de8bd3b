import Database
import Values

/// A periodic walk over all rows of a kind, some rows in each write transaction, to delete the rows that are too old.
/// An index would cost each write more than the walk costs.
struct Sweep: Sendable {
    let name: String
    /// Whether the settings ask for it.
    let isOn: @Sendable (Settings) -> Bool
    /// Works on the rows after a place, from the beginning if it is nil.
    ///
    /// - Returns: The place for the next step; nil at the end.
    let step: @Sendable (AgeTime, _ place: String?, Transaction) throws -> String?

    /// The time between the end of a walk and the next one. What expires is gone at most this much later.
    static let pauseSeconds = 3600
    /// Rows that a step looks at. It takes some milliseconds, for which other writes wait.
    static let rowsAtOnceMax = 1000
    /// Steps before other periodic work has its turn.
    static let stepsAtOnceMax = 20
}

extension Sweep {
    /// Makes a sweep that deletes the expired rows of owners, such as the messages of conversations.
    ///
    /// - Parameters:
    ///   - days: The setting; 0 keeps all rows.
    ///   - oldest: Selects the time of the oldest row of the owner `walked`.
    ///   - delete: Deletes some rows of one owner that are older than a moment, at least the oldest.
    static func deleting<Item>(
        _ name: String, afterDays days: @escaping @Sendable (Settings) -> Int, of owners: WalkedTable,
        oldest: @escaping @Sendable (ID<Tenant>) -> SQL,
        _ delete: @escaping @Sendable (_ end: Timestamp, ID<Item>, Transaction) throws -> Void
    ) -> Sweep {
        Sweep(name: name, isOn: { days($0) > 0 }) { age, place, tx in
            let end = age.end(ofDays: days(tx.settings))
            let step: (found: ID<Item>?, last: String)? = try tx.look(
                after: place, of: rowsAtOnceMax, in: owners, where: "(\(oldest(tx.tenant))) < \(end)")
            guard let step else { return nil }
            guard let found = step.found else { return step.last }
            try delete(end, found, tx)
            // The next step looks at the same owners, because this one may have more.
            return place ?? ""
        }
    }
}

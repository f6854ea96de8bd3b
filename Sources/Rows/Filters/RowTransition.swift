/// How a change moves a row relative to one subscription's set of rows: the rows that the receiver may see and the
/// filter matches.
public enum RowTransition: String, Sendable, Hashable, CaseIterable {
    /// The row has entered the set: it is new, it began to match, or it became visible.
    case enter
    /// The row was in the set and still is.
    case update
    /// The row has left the set: it was deleted, it stopped matching, or it became invisible.
    case leave

    /// Creates the transition. Nil if the row is in the set neither before nor after; then the receiver must not
    /// receive the change.
    public init?(wasInside: Bool, isInside: Bool) {
        switch (wasInside, isInside) {
        case (false, true): self = .enter
        case (true, true): self = .update
        case (true, false): self = .leave
        case (false, false): return nil
        }
    }

    /// Returns the rows that may be sent, from the point of view of the receiver's set of rows.
    ///
    /// | transition | record | oldRecord |
    /// |---|---|---|
    /// | enter | the new row | nothing: the receiver did not have the old one |
    /// | update | the new row | the old row |
    /// | leave | nothing: the receiver may not have the new one | the old row's primary key, which the receiver knows |
    public func rows(
        old: Filter.Row?, new: Filter.Row?, selection: ColumnSelection?, primaryKey: [String]
    ) -> (record: Filter.Row?, oldRecord: Filter.Row?) {
        func selected(_ row: Filter.Row?) -> Filter.Row? {
            guard let selection else { return row }
            return row.map { selection.applied(to: $0, primaryKey: primaryKey) }
        }
        switch self {
        case .enter: return (selected(new), nil)
        case .update: return (selected(new), selected(old))
        case .leave: return (nil, old.map { ColumnSelection([]).applied(to: $0, primaryKey: primaryKey) })
        }
    }
}

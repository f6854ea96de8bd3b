/// How a change moves a row in relation to one subscription's set of rows: those that the receiver may see and that the
/// filter matches.
public enum RowTransition: String, Sendable, Hashable, CaseIterable {
    /// The row is in the set now and was not before: it is new, it began to match, or it became visible.
    case enter
    /// The row was in the set and still is.
    case update
    /// The row was in the set and is no longer: it is gone, it stopped matching, or it may no longer be seen.
    case leave

    /// Nil: the row is in the set neither before nor after, and the receiver must not receive the change.
    public init?(wasInside: Bool, isInside: Bool) {
        switch (wasInside, isInside) {
        case (false, true): self = .enter
        case (true, true): self = .update
        case (true, false): self = .leave
        case (false, false): return nil
        }
    }

    /// What may be sent, in the terms of the receiver's own set of rows.
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

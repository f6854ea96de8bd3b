import Values

/// A step of an erasure: rows of a person that a feature erases itself, because rows, counts or streams of other users
/// depend on them. All other rows are erased by the declarations of their tables (``PersonPolicy``).
///
/// A step is called in one transaction after the other until it is done. Each call handles few rows, because all writes
/// wait for it, and does nothing for rows that are already erased: the process may be killed at any moment.
struct PersonStep: Sendable {
    /// Stored while an erasure runs. An unknown name starts the erasure again.
    let name: String
    /// Erases some rows.
    ///
    /// - Parameter place: the result of the previous call; nil at first
    /// - Returns: what the next call needs to continue; nil if nothing is left
    let run: @Sendable (_ person: ID<User>, _ place: String?, Transaction) throws -> String?

    init(_ name: String, _ run: @escaping @Sendable (ID<User>, String?, Transaction) throws -> String?) {
        (self.name, self.run) = (name, run)
    }

    /// Makes a step that looks for the remaining rows in each call.
    ///
    /// - Parameter run: returns whether there may be more
    static func repeating(
        _ name: String, _ run: @escaping @Sendable (ID<User>, Transaction) throws -> Bool
    ) -> PersonStep {
        PersonStep(name) { person, _, tx in try run(person, tx) ? "" : nil }
    }

    /// Rows that are looked up at once for a person's rows beside them: a millisecond or two.
    static let lookedUpAtOnce = 500
}

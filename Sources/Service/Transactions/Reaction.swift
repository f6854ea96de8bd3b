import Domain

/// What a feature does when a fact is recorded, inside the same transaction.
struct Reaction: Sendable {
    let run: @Sendable (Transaction, any Fact) throws -> Void

    static func on<F: Fact>(
        _: F.Type, _ body: @escaping @Sendable (Transaction, F) throws -> Void
    ) -> Reaction {
        Reaction { tx, fact in
            if let fact = fact as? F { try body(tx, fact) }
        }
    }
}

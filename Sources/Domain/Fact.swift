/// Something that happened inside a transaction and to which other features react before the transaction commits.
///
/// Features work together through facts: they depend on facts, and never on one another.
public protocol Fact: Sendable {}

import Threads
import Values
import Visibility

/// The rights of a caller: one tenant, and a set of keys.
///
/// A row is visible if and only if its tenant is the caller's and its audience shares a key with the scope. Keys are
/// made with `AudienceKey.make`, so that no claim can forge a segment.
public struct Scope: Sendable {
    public let tenant: ID<Tenant>
    public let keys: Set<String>
    /// The predicates made for this scope so far.
    let predicates: PredicateCache

    public init(tenant: ID<Tenant>, keys: Set<String>) {
        self.tenant = tenant
        self.keys = keys
        self.predicates = PredicateCache()
    }

    /// Returns whether the scope may see a row. This is the rule of visibility in Swift; `Policy.predicate` is the same
    /// rule in SQL.
    public func sees(tenant: ID<Tenant>, audience: some Sequence<String>) -> Bool {
        guard tenant == self.tenant else { return false }
        return audience.contains { keys.contains($0) }
    }

    /// Returns the column values of the keys that a template can have made, in the order of the keys.
    ///
    /// Only these keys are sorted: of the 10,000 keys that a scope may have, most templates fit one.
    func columnValues(of template: AudienceTemplate) -> [[String]] {
        keys.lazy.compactMap { key in template.columnValues(of: key).map { (key: key, values: $0) } }
            .sorted { $0.key < $1.key }.map(\.values)
    }

    /// Returns a cached statement under this scope, for frequent queries.
    ///
    /// - Parameter name: The name of the place in the code; there are only a few.
    public func statement(_ name: String, make: () -> SQL) -> SQL { predicates.statement(name, make: make) }

    /// Releases the cached predicates, which are created again when needed. For a scope that lives long and is rarely
    /// used.
    public func forgetPredicates() { predicates.forget() }
}

/// The predicates of a scope, by policy and qualifier.
///
/// A scope lives as long as its verified token is cached, and every request runs the same few queries under it. Parsing
/// its keys again each time costs more than the point read that they guard.
///
/// `@unchecked Sendable`: `state` is only accessed while `lock` is held.
final class PredicateCache: @unchecked Sendable {
    struct Key: Hashable {
        let policy: Policy.Entries
        let qualifier: String
        let tenantColumn: String

        static func == (left: Key, right: Key) -> Bool {
            left.policy === right.policy && left.qualifier == right.qualifier
                && left.tenantColumn == right.tenantColumn
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(ObjectIdentifier(policy))
            hasher.combine(qualifier)
        }
    }

    /// Policies are few and constant. Without this limit, a caller that creates policies dynamically would fill the
    /// memory.
    private static let entriesMax = 64

    private struct State {
        var entries: [Key: SQL] = [:]
        var statements: [String: SQL] = [:]
        var settings: [String: String]?
        /// The settings that each kind of query needs, by kind.
        var querySettings: [Int: [String: String]] = [:]
    }

    /// The locks of all caches. Every open stream has a scope, and a lock of its own would take more memory than the
    /// cache of a stream, which is empty. They hold a number, because ThreadSanitizer takes an empty state for what
    /// follows it in memory.
    private static let locks = (0..<64).map { _ in Locked(0) }

    /// Guards `state`. Caches share it, so nothing is made while it is held. Objects lie 16 bytes apart or more.
    private var lock: Locked<Int> { Self.locks[(Int(bitPattern: ObjectIdentifier(self)) >> 4) % Self.locks.count] }
    @exclusivity(unchecked) private var state = State()

    func forget() { lock.withLock { _ in state = State() } }

    /// Returns the scope as PostgreSQL settings. A process has one store, and so one vocabulary.
    func settings(make: () -> [String: String]) -> [String: String] {
        if let known = lock.withLock({ _ in state.settings }) { return known }
        let made = make()
        lock.withLock { _ in state.settings = made }
        return made
    }

    func settings(ofQuery kind: Int, make: () -> [String: String]) -> [String: String] {
        if let known = lock.withLock({ _ in state.querySettings[kind] }) { return known }
        let made = make()
        lock.withLock { _ in
            if state.querySettings.count >= Self.entriesMax { state.querySettings = [:] }
            state.querySettings[kind] = made
        }
        return made
    }

    func statement(_ name: String, make: () -> SQL) -> SQL {
        if let known = lock.withLock({ _ in state.statements[name] }) { return known }
        let made = make()
        lock.withLock { _ in state.statements[name] = made }
        return made
    }

    func predicate(_ key: Key, make: () -> SQL) -> SQL {
        if let known = lock.withLock({ _ in state.entries[key] }) { return known }
        let made = make()
        lock.withLock { _ in
            if state.entries.count >= Self.entriesMax { state.entries.removeAll(keepingCapacity: true) }
            state.entries[key] = made
        }
        return made
    }
}

import Threads
import Values

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
final class PredicateCache: Sendable {
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

    private let state = Locked(State())

    func forget() { state.withLock { $0 = State() } }

    /// Returns the scope as PostgreSQL settings. A process has one store, and so one vocabulary.
    func settings(make: () -> [String: String]) -> [String: String] {
        state.withLock { state in
            if let known = state.settings { return known }
            let made = make()
            state.settings = made
            return made
        }
    }

    func settings(ofQuery kind: Int, make: () -> [String: String]) -> [String: String] {
        if let known = state.withLock({ $0.querySettings[kind] }) { return known }
        let made = make()
        state.withLock { state in
            if state.querySettings.count >= Self.entriesMax { state.querySettings = [:] }
            state.querySettings[kind] = made
        }
        return made
    }

    func statement(_ name: String, make: () -> SQL) -> SQL {
        // Created outside the lock, which its predicates need.
        if let known = state.withLock({ $0.statements[name] }) { return known }
        let made = make()
        state.withLock { $0.statements[name] = made }
        return made
    }

    func predicate(_ key: Key, make: () -> SQL) -> SQL {
        state.withLock { state in
            if let known = state.entries[key] { return known }
            if state.entries.count >= Self.entriesMax { state.entries.removeAll(keepingCapacity: true) }
            let made = make()
            state.entries[key] = made
            return made
        }
    }
}

import Foundation

/// What a caller holds: one tenant, and a set of keys.
///
/// A row is visible if and only if its tenant is the caller's and its audience shares a key with the scope.
/// Keys are made with `AudienceKey.make`, so that no claim can forge a segment.
public struct Scope: Sendable, Hashable {
    public let tenant: String
    public let keys: Set<String>
    /// The predicates made for this scope so far; not part of its identity.
    let predicates: PredicateCache

    public init(tenant: String, keys: Set<String>) {
        self.tenant = tenant
        self.keys = keys
        self.predicates = PredicateCache()
    }

    /// The rule of visibility in its Swift form; `Policy.predicate` is the same rule in SQL.
    public func sees(tenant: String, audience: some Sequence<String>) -> Bool {
        // Bytes, not Swift's canonical equivalence: the database compares bytes.
        guard tenant.utf8.elementsEqual(self.tenant.utf8) else { return false }
        return audience.contains { keys.contains($0) }
    }

    /// Lets go of the predicates made so far, which are made again when they are needed: for a scope that is held for
    /// long and asked seldom.
    public func forgetPredicates() { predicates.forget() }

    public static func == (left: Scope, right: Scope) -> Bool {
        left.predicates === right.predicates
            || (left.tenant.utf8.elementsEqual(right.tenant.utf8) && left.keys == right.keys)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(tenant)
        hasher.combine(keys)
    }
}

/// The predicates that a scope was turned into, by policy and qualifier.
///
/// A scope lives as long as its verified token is cached and is asked the same few questions at every request;
/// taking its keys apart again each time costs more than the point read they guard.
///
/// `@unchecked Sendable`: every access to the variables holds `lock`.
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

    /// Policies are few and constant. Without the bound, a caller that makes policies on the fly would fill memory.
    private static let entriesMax = 64

    /// Guards the three variables.
    private let lock = NSLock()
    private var entries: [Key: SQL] = [:]
    private var madeSettings: [String: String]?
    /// What each kind of query needs of them, by the kind.
    private var querySettings: [Int: [String: String]] = [:]

    func forget() {
        lock.lock()
        defer { lock.unlock() }
        entries = [:]
        madeSettings = nil
        querySettings = [:]
    }

    /// The scope as PostgreSQL is told it. A process has one store, and so one vocabulary.
    func settings(make: () -> [String: String]) -> [String: String] {
        lock.lock()
        defer { lock.unlock() }
        if let madeSettings { return madeSettings }
        let made = make()
        madeSettings = made
        return made
    }

    func settings(ofQuery kind: Int, make: () -> [String: String]) -> [String: String] {
        if let known = lock.withLock({ querySettings[kind] }) { return known }
        let made = make()
        lock.withLock {
            if querySettings.count >= Self.entriesMax { querySettings = [:] }
            querySettings[kind] = made
        }
        return made
    }

    func predicate(_ key: Key, make: () -> SQL) -> SQL {
        lock.lock()
        defer { lock.unlock() }
        if let known = entries[key] { return known }
        if entries.count >= Self.entriesMax { entries.removeAll(keepingCapacity: true) }
        let made = make()
        entries[key] = made
        return made
    }
}

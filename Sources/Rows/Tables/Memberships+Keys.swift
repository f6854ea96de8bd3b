import Values
import Visibility

/// The caller to resolve memberships for: its tenant, its role and the keys that its token claims.
public struct MembershipClaimant: Sendable, Hashable {
    public let tenant: ID<Tenant>
    public let role: String
    /// The keys made from the verified token: `user:{sub}`, `student:{student_id}`, `class:{id}:staff`, …
    public let claimed: Set<String>

    public init(tenant: ID<Tenant>, role: String, claimed: Set<String>) {
        self.tenant = tenant
        self.role = role
        self.claimed = claimed
    }
}

/// The reason why a caller has a key, or lacks it although its token claims it.
public enum KeyOrigin: Sendable, Hashable {
    case claimed
    /// The membership of this name grants it.
    case granted(by: String)
    /// The token claims it, but this membership contradicts the claim.
    case refuted(by: String)
}

extension Memberships {
    /// Returns the keys of a caller's scope: the claims that no membership refutes, and the keys that memberships
    /// grant.
    public func keys(of caller: MembershipClaimant) -> Set<String> { scope(of: caller).keys }

    /// Returns the keys, and the number of further keys for which the scope has no room.
    public func scope(of caller: MembershipClaimant) -> (keys: Set<String>, omitted: Int) {
        let (origins, omitted) = resolve(caller)
        // With the capacity at once, because a growing set hashes its members again.
        var keys = Set<String>(minimumCapacity: origins.count)
        for (key, origin) in origins {
            if case .refuted = origin { continue }
            keys.insert(key)
        }
        return (keys, omitted)
    }

    /// Returns every key that a caller claims or is granted, with the reason why it has the key or not.
    ///
    /// Memberships that grant the subject of another are evaluated first, so that a chain (user → student → class) is
    /// followed to its end. The declarations contain no cycles.
    ///
    /// At most ``TableLimits/grantedKeysMax`` keys are added, the first in text order. A scope is bounded, and a
    /// missing key can only hide rows.
    public func origins(of caller: MembershipClaimant) -> [String: KeyOrigin] { resolve(caller).origins }

    private func resolve(_ caller: MembershipClaimant) -> (origins: [String: KeyOrigin], omitted: Int) {
        var omitted: Set<String> = []
        var origins = Dictionary(uniqueKeysWithValues: caller.claimed.map { ($0, KeyOrigin.claimed) })
        var grantedCount = 0
        for shape in grantShapes {
            let rules = shape.filter {
                memberships[$0].declaration.role?.hasBytes(of: caller.role) ?? true
            }
            guard let first = rules.first else { continue }
            let known = rules.map { (rule: $0, subjects: knownSubjects($0, caller.tenant, origins)) }
            let contradicting = known.first { !$0.subjects.isEmpty }?.rule
            for (key, origin) in origins where origin == .claimed {
                guard let object = memberships[first].declaration.grants.columnValues(of: key)?.first,
                    let rule = contradicting ?? rules.first(where: { isDecided($0, object, caller.tenant) })
                else { continue }
                origins[key] = .refuted(by: memberships[rule].declaration.name)
            }
            for (rule, subjects) in known {
                let declaration = memberships[rule].declaration
                var gained = subjects.flatMap { (self.subjects[$0] ?? [:]).keys.map { declaration.grantKey($0.text) } }
                // Sorted, so that always the same keys are kept.
                if grantedCount + gained.count > TableLimits.grantedKeysMax { gained.sort() }
                origins.reserveCapacity(origins.count + min(gained.count, TableLimits.grantedKeysMax - grantedCount))
                for key in gained {
                    guard grantedCount < TableLimits.grantedKeysMax || origins[key] != nil else {
                        omitted.insert(key)
                        continue
                    }
                    if origins.updateValue(.granted(by: declaration.name), forKey: key) == nil { grantedCount += 1 }
                }
            }
        }
        return (origins, omitted.count)
    }

    private func knownSubjects(_ index: Int, _ tenant: ID<Tenant>, _ origins: [String: KeyOrigin]) -> [SubjectName] {
        origins.compactMap { key, origin in
            if case .refuted = origin { return nil }
            guard let value = memberships[index].declaration.subject.columnValues(of: key)?.first else { return nil }
            let name = SubjectName(membership: index, tenant: tenant, value: value)
            return subjects[name] == nil ? nil : name
        }
    }

    /// Whether the single deciding row of the key is known.
    private func isDecided(_ index: Int, _ object: String, _ tenant: ID<Tenant>) -> Bool {
        guard memberships[index].rowDecides else { return false }
        return facts[FactName(membership: index, row: object)]?.contains { $0.tenant == tenant } ?? false
    }
}

/// A key that a change revokes from all holders of another key.
public struct KeyLoss: Sendable, Hashable {
    public let holder: String
    public let key: String
}

extension Memberships {
    /// Returns the keys that may see a row after a change, and that its old row granted but its new one does not. Must
    /// be called before ``apply(_:of:)``.
    func losses(
        by operation: RowOperation, of table: TableDeclaration,
        _ sides: (old: TableDeclaration.Side?, new: TableDeclaration.Side?),
        _ readers: RowAudience?
    ) -> [KeyLoss] {
        guard operation == .update, !table.memberships.isEmpty, let old = sides.old, let new = sides.new, let readers
        else { return [] }
        return memberships.indices.compactMap { index in
            let rule = memberships[index]
            guard rule.table == table.name, rule.schema == table.schema else { return nil }
            func grant(_ row: RowWrite.Row) -> (subject: String, object: String)? {
                guard rule.declaration.when.holds(for: row),
                    let subject = row[rule.declaration.subjectColumn]?.keyText,
                    let object = row[rule.declaration.grantColumn]?.keyText
                else { return nil }
                return (subject, object)
            }
            guard let before = grant(old.row) else { return nil }
            if let after = grant(new.row), after.subject.hasBytes(of: before.subject),
                after.object.hasBytes(of: before.object)
            {
                return nil
            }
            let key = rule.declaration.grantKey(before.object)
            guard readers.keys.contains(key), !isGrantedElsewhere(before, by: index, in: old, table) else { return nil }
            return KeyLoss(holder: rule.declaration.subjectKey(before.subject), key: key)
        }
    }

    /// Whether another row than the old one grants the same key.
    private func isGrantedElsewhere(
        _ grant: (subject: String, object: String), by index: Int, in old: TableDeclaration.Side,
        _ table: TableDeclaration
    ) -> Bool {
        let subject = SubjectName(membership: index, tenant: old.tenant, value: grant.subject)
        let rows = subjects[subject]?[ID(grant.object)] ?? 0
        let isOwn = table.recordId(of: old.row).flatMap { facts[FactName(membership: index, row: $0)] }?.contains {
            $0.tenant == old.tenant && $0.counts && $0.subject.hasBytes(of: grant.subject)
                && $0.object.hasBytes(of: grant.object)
        }
        return rows > (isOwn == true ? 1 : 0)
    }
}

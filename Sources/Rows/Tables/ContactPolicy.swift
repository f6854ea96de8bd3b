import Values
import Visibility

/// What a user does to another user, as far as a file of tables can restrict it.
public enum ContactKind: String, Sendable, CaseIterable {
    case conversations, requests, follows
}

/// The rules of a file of tables about which users may contact which. A kind without a rule is open to all users of the
/// tenant.
public struct ContactPolicy: Sendable {
    /// A relation of the caller to the addressed user.
    public enum Condition: Sendable, Hashable {
        case everyone
        /// The caller holds the key that the template makes from the id of the addressed user: `friend-of:{user}`.
        case key(AudienceTemplate)
        /// The caller and the addressed user hold the same key of the template: `team:{id}:member`. Of the addressed
        /// user only the keys from rows are known.
        case sharedKey(AudienceTemplate, shape: String)
    }

    /// The rule of one kind: one of `any` must hold, and none of `not`. Without `any`, only backends may.
    public struct Rule: Sendable, Hashable {
        public let any: [Condition]
        public let not: [Condition]
    }

    /// The caller, by its scope.
    public struct Caller: Sendable {
        public let tenant: ID<Tenant>
        public let keys: Set<String>
        /// The number of keys for which the scope has no room.
        public let omittedKeys: Int

        public init(tenant: ID<Tenant>, keys: Set<String>, omittedKeys: Int) {
            (self.tenant, self.keys, self.omittedKeys) = (tenant, keys, omittedKeys)
        }

        /// Whether the scope may lack a key. A subject's further memberships are rejected at the same number.
        var isFull: Bool { omittedKeys > 0 || keys.count >= TableLimits.grantsPerSubjectMax }
    }

    static let open = ContactPolicy(rules: [:])

    public let rules: [ContactKind: Rule]

    /// Whether the rules allow a caller to contact another user. A caller whose scope is full meets no rule with `not`:
    /// the key that forbids the contact may be missing.
    public func allows(_ kind: ContactKind, from caller: Caller, to user: ID<User>, by memberships: Memberships) -> Bool
    {
        guard let rule = rules[kind] else { return true }
        func holds(_ condition: Condition) -> Bool {
            switch condition {
            case .everyone: true
            case .key(let template): template.key { _ in user.text }.map(caller.keys.contains) ?? false
            case .sharedKey(let template, let shape):
                memberships.contains(shape: shape, of: user, in: caller.tenant) { value in
                    template.key { _ in value }.map(caller.keys.contains) ?? false
                }
            }
        }
        if !rule.not.isEmpty, caller.isFull || rule.not.contains(where: holds) { return false }
        return rule.any.contains(where: holds)
    }
}

extension ContactPolicy.Condition: CustomStringConvertible {
    public var description: String {
        switch self {
        case .everyone: "everyone"
        case .key(let template), .sharedKey(let template, _): template.description
        }
    }
}

extension Memberships {
    /// Whether a condition holds for the value of some key of a form that rows alone give a user. Memberships of one
    /// role do not count, because the user's role is unknown.
    func contains(
        shape: String, of user: ID<User>, in tenant: ID<Tenant>, where holds: (String) -> Bool
    ) -> Bool {
        (impersonalGrants[shape] ?? []).contains { index in
            func grants(_ subject: String) -> Bool {
                let objects = subjects[SubjectName(membership: index, tenant: tenant, value: subject)]
                return objects?.keys.contains { holds($0.text) } ?? false
            }
            let subjectShape = subjectShapes[index]
            return subjectShape == MembershipDeclaration.userShape
                ? grants(user.text) : contains(shape: subjectShape, of: user, in: tenant, where: grants)
        }
    }
}

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
        case key(Key)
        /// The caller and the addressed user hold the same key of the template: `team:{id}:member`. Of the addressed
        /// user only the keys from rows are known.
        case sharedKey(Key)
    }

    /// A template of keys, with its shape, which each question looks up.
    public struct Key: Sendable, Hashable {
        let template: AudienceTemplate
        let shape: String

        init(_ template: AudienceTemplate) { (self.template, shape) = (template, template.shape) }
    }

    /// The rule of one kind: one of `any` must hold, and none of `not`. Without `any`, only backends may.
    public struct Rule: Sendable, Hashable {
        public let any: [Condition]
        public let not: [Condition]
    }

    /// The caller of a request, with the keys of its scope.
    public struct Caller: Sendable {
        let tenant: ID<Tenant>
        let userId: ID<User>
        let role: String
        let keys: Set<String>
        /// The number of keys for which the scope has no room.
        let omittedKeys: Int

        public init(tenant: ID<Tenant>, userId: ID<User>, role: String, keys: Set<String>, omittedKeys: Int) {
            (self.tenant, self.userId, self.role) = (tenant, userId, role)
            (self.keys, self.omittedKeys) = (keys, omittedKeys)
        }
    }

    static let open = ContactPolicy(rules: [:], hiddenShapes: [])

    public let rules: [ContactKind: Rule]
    /// The shapes of the keys that only `not` names. They are in no scope, because a scope would tell a user who has
    /// blocked it.
    let hiddenShapes: Set<String>

    /// Whether the rules allow a caller to contact another user.
    public func allows(_ kind: ContactKind, from caller: Caller, to user: ID<User>, by memberships: Memberships) -> Bool
    {
        guard let rule = rules[kind] else { return true }
        let isForbidden = rule.not.contains { condition in
            guard case .key(let key) = condition else { return memberships.holds(condition, for: user, from: caller) }
            return memberships.mayGrant(key, for: user, to: caller)
        }
        return !isForbidden && rule.any.contains { memberships.holds($0, for: user, from: caller) }
    }
}

extension ContactPolicy.Condition: CustomStringConvertible {
    public var description: String {
        switch self {
        case .everyone: "everyone"
        case .key(let key), .sharedKey(let key): key.template.description
        }
    }
}

extension Memberships {
    /// Whether a caller has a relation to a user, by the keys of its scope.
    fileprivate func holds(
        _ condition: ContactPolicy.Condition, for user: ID<User>, from caller: ContactPolicy.Caller
    ) -> Bool {
        func holds(_ key: ContactPolicy.Key, _ value: String) -> Bool {
            key.template.key { _ in value }.map(caller.keys.contains) ?? false
        }
        return switch condition {
        case .everyone: true
        case .key(let key): holds(key, user.text)
        case .sharedKey(let key): contains(shape: key.shape, of: user, in: caller.tenant) { holds(key, $0) }
        }
    }

    /// Whether a condition holds for the value of some key of a shape that rows alone give a user. Memberships of one
    /// role do not count, because the user's role is unknown.
    private func contains(
        shape: String, of user: ID<User>, in tenant: ID<Tenant>, where holds: (String) -> Bool
    ) -> Bool {
        (membershipsByShape[shape] ?? []).contains { index in
            let rule = memberships[index]
            guard rule.declaration.role == nil else { return false }
            func grants(_ subject: String) -> Bool {
                let objects = subjects[SubjectName(membership: index, tenant: tenant, value: subject)]
                return objects?.keys.contains { holds($0.text) } ?? false
            }
            return rule.isOfUser
                ? grants(user.text) : contains(shape: rule.subjectShape, of: user, in: tenant, where: grants)
        }
    }

    /// Whether a caller holds a key for a user, by its token or by rows, or may hold it: a further row of a subject with
    /// very many is rejected, and a full scope may lack a subject.
    fileprivate func mayGrant(_ key: ContactPolicy.Key, for user: ID<User>, to caller: ContactPolicy.Caller) -> Bool {
        if holds(.key(key), for: user, from: caller) { return true }
        return (membershipsByShape[key.shape] ?? []).contains { index in
            let rule = memberships[index]
            guard rule.declaration.role?.hasBytes(of: caller.role) ?? true else { return false }
            func grants(_ subject: String) -> Bool {
                let name = SubjectName(membership: index, tenant: caller.tenant, value: subject)
                guard let objects = subjects[name] else { return false }
                return objects[ID(user.text)] != nil || objects.count >= TableLimits.grantsPerSubjectMax
            }
            if rule.isOfUser { return grants(caller.userId.text) }
            return caller.omittedKeys > 0
                || caller.keys.contains { rule.declaration.subject.columnValues(of: $0)?.first.map(grants) ?? false }
        }
    }
}

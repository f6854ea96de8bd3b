import Foundation

/// An identity whose data the device keeps: a digest that the service has named, and whom it belongs to.
///
/// Names in the storage consist of digests, so that nothing in it shows a claim.
struct KnownIdentity: Codable, Sendable, Hashable {
    let identity: String
    /// A hash of the issuer and the subject of its tokens; nil for tokens that name neither.
    let person: String?
    /// A hash of the user's id, for apps that name the user before they have a token.
    let user: String?

    /// Returns the one identity of a person, or without a token of the user that the app named. Nil if the device keeps none
    /// or several, since only the service can tell which one it is.
    static func only(_ known: [KnownIdentity], person: String?, user: String?) -> KnownIdentity? {
        let own = known.filter { $0.belongs(to: person, user) }
        return own.count == 1 ? own[0] : nil
    }

    func belongs(to person: String?, _ user: String?) -> Bool {
        if let person { return self.person == person }
        return user != nil && self.user == user
    }

    static func key(of user: String?) -> String? { user.map { Digest.of(JSON.array([.string($0)]).text) } }
}

/// The identities whose data a storage keeps for one service, each with its own keys.
struct IdentityStorage: Sendable {
    private static let name = "known"

    let storage: any ClientStorage
    let url: String

    /// The beginning of the storage keys of this service.
    private var prefix: String { "bellhop 3 \(url) " }

    /// The beginning of the storage keys of an identity.
    func scope(of identity: String) -> String { "\(prefix)\(identity) " }

    func all() async -> [KnownIdentity] {
        let keys = (try? await storage.keys(beginningWith: prefix)) ?? []
        var known: [KnownIdentity] = []
        for key in keys where key.hasSuffix(" \(IdentityStorage.name)") {
            guard let data = try? await storage.get(key),
                let one = try? JSONDecoder().decode(KnownIdentity.self, from: data)
            else { continue }
            known.append(one)
        }
        return known
    }

    func keep(_ known: KnownIdentity) async {
        guard let data = try? JSONEncoder().encode(known) else { return }
        try? await storage.set("\(scope(of: known.identity))\(IdentityStorage.name)", data)
    }

    /// Deletes what an identity has seen. Its waiting writes stay, and while it has some it stays known.
    func drop(_ identity: String) async {
        let (scope, outbox) = (scope(of: identity), scope(of: identity) + IdentityStorage.outbox)
        let keys = (try? await storage.keys(beginningWith: scope)) ?? []
        let hasWrites = keys.contains { $0.hasPrefix(outbox) }
        for key in keys where !key.hasPrefix(outbox) {
            if hasWrites, key.hasSuffix(" \(IdentityStorage.name)") { continue }
            try? await storage.remove(key)
        }
    }

    /// Deletes all that the storage keeps of an identity.
    func remove(_ identity: String) async {
        for key in (try? await storage.keys(beginningWith: scope(of: identity))) ?? [] {
            try? await storage.remove(key)
        }
    }

    static let outbox = "outbox/"
}

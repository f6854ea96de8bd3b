import Foundation

/// The identities whose data a storage keeps for one service, each with its own keys.
struct IdentityStorage: Sendable {
    private static let name = "known"

    let storage: any ClientStorage
    let url: String

    /// The beginning of the storage keys of this service.
    private var prefix: String { "bellhop 3 \(url) " }

    /// The beginning of the storage keys of an identity.
    func scope(of identity: String) -> String { "\(prefix)\(identity) " }

    func all() async -> [SessionMachine.Known] {
        let keys = (try? await storage.keys(beginningWith: prefix)) ?? []
        var known: [SessionMachine.Known] = []
        for key in keys where key.hasSuffix(" \(IdentityStorage.name)") {
            guard let data = try? await storage.get(key),
                let one = try? JSONDecoder().decode(SessionMachine.Known.self, from: data)
            else { continue }
            known.append(one)
        }
        return known
    }

    func keep(_ known: SessionMachine.Known) async {
        guard let data = try? JSONEncoder().encode(known) else { return }
        try? await storage.set("\(scope(of: known.identity))\(IdentityStorage.name)", data)
    }

    /// Deletes what an identity has seen. It stays known, and its waiting writes stay for its return.
    func forgetState(of identity: String) async {
        for name in [IdentityStorage.state, IdentityStorage.cursor] {
            try? await storage.remove(scope(of: identity) + name)
        }
    }

    /// Deletes all that the storage keeps of an identity.
    func remove(_ identity: String) async {
        for key in (try? await storage.keys(beginningWith: scope(of: identity))) ?? [] {
            try? await storage.remove(key)
        }
    }

    static let outbox = "outbox/"
    static let state = "state"
    static let cursor = "cursor"
}

import Database
import Foundation
import Threads

/// A cache of recently verified tokens, by the hash of their bytes.
///
/// New tokens go into the young table. When it is full, it becomes the old table, and tokens still in use move back to
/// the young one. This evicts the least recently used half without tracking uses.
final class VerifiedTokens: Sendable {
    private struct Entry {
        let token: [UInt8]
        let principal: Principal
        var keyCount: Int { principal.caller.scope.keys.count }

        /// Two tokens may share a hash, so the bytes are compared.
        func matches(_ other: UnsafeBufferPointer<UInt8>) -> Bool {
            token.count == other.count
                && token.withUnsafeBufferPointer { own in
                    guard let left = own.baseAddress, let right = other.baseAddress else { return false }
                    return memcmp(left, right, other.count) == 0
                }
        }
    }

    private struct Tables {
        var young: [Int: Entry] = [:]
        var old: [Int: Entry] = [:]
        /// The keys of the scopes in the young table.
        var keyCount = 0
        /// Grows when the signing keys change: a token verified with the previous keys is not stored afterwards.
        var generation = 0

        mutating func insert(_ hash: Int, _ entry: Entry) {
            let added = entry.keyCount - (young[hash]?.keyCount ?? 0)
            if young.count >= Limits.verifiedTokensMax / 2 || keyCount + added > Limits.verifiedKeysMax / 2 {
                old = young
                young = [:]
                keyCount = 0
            }
            keyCount += young.isEmpty ? entry.keyCount : added
            young[hash] = entry
        }
    }

    private let tables = Locked(Tables())

    /// Returns the last bytes, which belong to the signature: they are as good as random. Only tokens signed by the
    /// issuer are stored, so an attacker cannot choose colliding tokens.
    static func hash(of token: UnsafeBufferPointer<UInt8>) -> Int {
        let bytes = UnsafeRawBufferPointer(token)
        guard bytes.count >= 16 else { return bytes.reduce(0) { $0 << 8 ^ Int($1) } }
        let last = bytes.count - 8
        return bytes.loadUnaligned(fromByteOffset: last, as: Int.self)
            ^ bytes.loadUnaligned(fromByteOffset: last - 8, as: Int.self) &* 0x1_0000_01B3
    }

    /// - Returns: the token's principal, or nil if it is not cached; and the generation to pass to `store`.
    func find(_ hash: Int, _ token: UnsafeBufferPointer<UInt8>) -> (Principal?, generation: Int) {
        tables.withLock { tables in
            if let entry = tables.young[hash] {
                return (entry.matches(token) ? entry.principal : nil, tables.generation)
            }
            guard let entry = tables.old[hash], entry.matches(token) else { return (nil, tables.generation) }
            tables.old[hash] = nil
            tables.insert(hash, entry)
            return (entry.principal, tables.generation)
        }
    }

    func store(_ principal: Principal, hash: Int, token: UnsafeBufferPointer<UInt8>, generation: Int) {
        let entry = Entry(token: Array(token), principal: principal)
        tables.withLock { if generation == $0.generation { $0.insert(hash, entry) } }
    }

    /// Drops all tokens, after the signing keys changed.
    func removeAll() {
        tables.withLock { $0 = Tables(generation: $0.generation + 1) }
    }
}

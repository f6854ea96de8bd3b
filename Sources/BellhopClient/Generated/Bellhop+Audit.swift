// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct AuditEntry: Codable, Sendable, Hashable {
        /// Number of the entry in the chain of the tenant.
        public internal(set) var sequence: Int
        public internal(set) var at: Date
        public internal(set) var actorKind: AuditActorKind
        /// Id of the caller; null after the erasure of the person.
        public internal(set) var actorId: String?
        /// Keyed digest of the id. It stays after an erasure.
        public internal(set) var actorDigest: String
        /// Method and path of the operation, the command `bellhop push rotate`, or `retention` for the deletion of
        /// expired entries.
        public internal(set) var action: String
        /// Table of the rows; null if the operation concerned no row of one user.
        public internal(set) var targetKind: String?
        /// Id of the user whose data was concerned; null if there is none, and after an erasure.
        public internal(set) var targetId: String?
        /// Keyed digest of that id.
        public internal(set) var targetDigest: String?
        /// Value or digest of `X-Request-Id`; null for calls that are counted.
        public internal(set) var requestId: String?
        public internal(set) var outcome: AuditOutcome
        /// Number of calls or rows for which the entry stands.
        public internal(set) var count: Int
        /// Set if the entry notes the deletion of expired entries; otherwise null.
        public internal(set) var cut: AuditCut?
        public internal(set) var previousHash: String
        /// SHA-256 in hexadecimal.
        public internal(set) var hash: String

        public init(
            sequence: Int, at: Date, actorKind: AuditActorKind, actorId: String? = nil, actorDigest: String,
            action: String, targetKind: String? = nil, targetId: String? = nil, targetDigest: String? = nil,
            requestId: String? = nil, outcome: AuditOutcome, count: Int, cut: AuditCut? = nil, previousHash: String,
            hash: String
        ) {
            self.sequence = sequence
            self.at = at
            self.actorKind = actorKind
            self.actorId = actorId
            self.actorDigest = actorDigest
            self.action = action
            self.targetKind = targetKind
            self.targetId = targetId
            self.targetDigest = targetDigest
            self.requestId = requestId
            self.outcome = outcome
            self.count = count
            self.cut = cut
            self.previousHash = previousHash
            self.hash = hash
        }
    }

    /// `service` is a backend, `operator` a person at the command line of the service, and `bellhop` the service
    /// itself.
    public struct AuditActorKind: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let service = AuditActorKind(rawValue: "service")
        public static let administrator = AuditActorKind(rawValue: "administrator")
        public static let staff = AuditActorKind(rawValue: "staff")
        public static let `operator` = AuditActorKind(rawValue: "operator")
        public static let bellhop = AuditActorKind(rawValue: "bellhop")
    }

    /// `shown` means that rows were read (only with `auditReads`), and `accepted` that the operation wrote no row of
    /// one user.
    public struct AuditOutcome: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let stored = AuditOutcome(rawValue: "stored")
        public static let changed = AuditOutcome(rawValue: "changed")
        public static let removed = AuditOutcome(rawValue: "removed")
        public static let shown = AuditOutcome(rawValue: "shown")
        public static let accepted = AuditOutcome(rawValue: "accepted")
    }

    public struct AuditCut: Codable, Sendable, Hashable {
        /// Number of the last deleted entry.
        public internal(set) var through: Int
        /// Hash of that entry.
        public internal(set) var hash: String
        /// Newest time among the deleted entries.
        public internal(set) var at: Date
        /// Days for which entries were kept.
        public internal(set) var keptDays: Int

        public init(through: Int, hash: String, at: Date, keptDays: Int) {
            self.through = through
            self.hash = hash
            self.at = at
            self.keptDays = keptDays
        }
    }
}

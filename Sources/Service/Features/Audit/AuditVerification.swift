import Values

/// The result of the verification of one tenant's chain.
public struct AuditVerification: Sendable {
    public let tenant: String
    /// The last entry.
    public let sequence: Int
    public let hash: String
    /// The time of the last entry; nil for an empty chain.
    public let at: Timestamp?
    /// The fault of the first entry that is missing or was changed; nil otherwise.
    public let fault: String?

    /// What a verification without earlier lines cannot find.
    public static let limits = """
        Without --known, entries that were removed from the end of a log are not found, and neither is a log that was \
        emptied or computed again as a whole. Keep this output outside the database, and pass it next time.
        """

    /// The last entry, as a line to keep outside the database: tenant, number, hash and time.
    public var line: String { "\(tenant)\t\(sequence)\t\(hash)\t\(at?.rfc3339 ?? "-")" }

    /// Returns the entries of earlier lines, by tenant and number. The first line of an entry counts: a later one may
    /// have been printed after an attack.
    ///
    /// - Throws: ``UnreadableLine``. A file that is not the output of a verification would prove nothing.
    static func entries(in lines: String) throws -> [ID<Tenant>: [Int: KnownEntry]] {
        var entries: [ID<Tenant>: [Int: KnownEntry]] = [:]
        for (index, line) in lines.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            if line.allSatisfy(\.isWhitespace) || line == limits { continue }
            let parts = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 4, let sequence = Int(parts[1]), (0..<Int.max).contains(sequence),
                parts[2].utf8.count == AuditEntry.origin.utf8.count
            else { throw UnreadableLine(number: index + 1) }
            // An empty chain has no entry.
            if sequence == 0, parts[3] == "-" { continue }
            guard let at = Timestamp(rfc3339: parts[3]) else { throw UnreadableLine(number: index + 1) }
            if entries[ID(parts[0])]?[sequence] == nil {
                entries[ID(parts[0]), default: [:]][sequence] = KnownEntry(hash: parts[2], at: at)
            }
        }
        return entries
    }

    /// A line that no verification has printed.
    struct UnreadableLine: Error, CustomStringConvertible {
        let number: Int

        var description: String {
            """
            line \(number) of the known lines is not one of an earlier verification: tenant, number, hash and time, \
            separated by tabs
            """
        }
    }
}

/// An entry that an earlier verification has found.
struct KnownEntry: Sendable {
    let hash: String
    let at: Timestamp
}

/// The check of one chain, entry by entry. It stops at the first fault.
struct AuditChain {
    let tenant: ID<Tenant>
    let known: [Int: KnownEntry]
    /// Whether a digest belongs to an id; ids without a digest are not compared.
    let isDigest: (String, ID<User>) -> Bool
    /// The days for which entries are kept; nil if each entry of a deletion names its own.
    let keptDays: Int?
    /// The present time. An entry of a deletion with a later time is invented.
    let now: Timestamp

    /// An entry in the chain.
    struct Link: Equatable {
        var sequence = 0
        var hash = AuditEntry.origin
    }

    /// The entry behind which the chain begins. The deletion that names it is an entry of the chain.
    private(set) var start = Link()
    private(set) var last = Link()
    private(set) var at: Timestamp?
    private(set) var fault: String?
    /// The latest deletion of expired entries, and the entry that notes it.
    private var cut: (cut: AuditCut, sequence: Int)?

    init(
        tenant: ID<Tenant>, known: [Int: KnownEntry], isDigest: @escaping (String, ID<User>) -> Bool, keptDays: Int?,
        now: Timestamp
    ) {
        (self.tenant, self.known, self.isDigest) = (tenant, known, isDigest)
        (self.keptDays, self.now) = (keptDays, now)
    }

    mutating func add(_ entry: AuditEntry) {
        if last.sequence == 0, entry.sequence > 1 {
            start = Link(sequence: entry.sequence - 1, hash: entry.previousHash)
            last = start
        }
        fault = fault(of: entry)
        guard fault == nil else { return }
        (last, at) = (Link(sequence: entry.sequence, hash: entry.hash), entry.at)
        if let found = entry.cut { cut = (found, entry.sequence) }
    }

    private func fault(of entry: AuditEntry) -> String? {
        // The number can be invented, so the addition must not end the process.
        let expected = last.sequence &+ 1
        guard entry.sequence == expected else { return "entry \(expected) is missing" }
        guard entry.previousHash == last.hash, entry.computedHash(of: tenant) == entry.hash else {
            return "entry \(expected) was changed: its hash does not follow from it and the entry before"
        }
        guard known[expected]?.hash ?? entry.hash == entry.hash else {
            return "entry \(expected) was changed: an earlier verification found another hash"
        }
        guard isNamed(entry.actorId, entry.actorDigest), isNamed(entry.targetId, entry.targetDigest) else {
            return "entry \(expected) was changed: it names another person"
        }
        return entry.cut.flatMap { fault(of: $0, in: entry) }
    }

    /// An erased id has no digest to compare.
    private func isNamed(_ user: ID<User>?, _ digest: String?) -> Bool {
        guard let user else { return true }
        return digest.map { isDigest($0, user) } ?? false
    }

    private func fault(of cut: AuditCut, in entry: AuditEntry) -> String? {
        let name = "entry \(entry.sequence), which notes a deletion,"
        guard cut.through < entry.sequence else { return "\(name) names entries after itself" }
        guard entry.at <= now.adding(seconds: AuditLimits.clockSkewSeconds) else { return "\(name) is in the future" }
        // The values can be invented, so the computation must not overflow.
        let age = Int128(entry.at.microseconds) - Int128(cut.at.microseconds)
        guard age > Int128(cut.keptDays) * 86_400_000_000 else {
            return "\(name) deleted entries that were less than \(cut.keptDays) days old"
        }
        if let keptDays, cut.keptDays < keptDays {
            return "\(name) kept entries for \(cut.keptDays) days only, not for \(keptDays)"
        }
        return nil
    }

    /// Compares the verified chain with what else is known about it.
    ///
    /// - Parameter head: The stored last entry.
    mutating func end(at head: Link) {
        if fault == nil { fault = startFault() ?? headFault(head) ?? knownFault() }
    }

    private func startFault() -> String? {
        guard start.sequence > 0 else { return nil }
        guard let cut, cut.cut.through >= start.sequence else {
            let first = (cut?.cut.through ?? 0) + 1
            return "entry \(first) is missing: no entry notes its deletion"
        }
        guard cut.cut.through == start.sequence else {
            return "entry \(start.sequence + 1) is there, but entry \(cut.sequence) notes its deletion"
        }
        guard cut.cut.hash == start.hash else {
            return """
                entry \(start.sequence) was changed: entry \(cut.sequence), which notes its deletion, has another hash
                """
        }
        return nil
    }

    private func headFault(_ head: Link) -> String? {
        guard last != head else { return nil }
        return head.sequence > last.sequence
            ? "entry \(last.sequence + 1) is missing: the last one is \(head.sequence)"
            : "entry \(last.sequence) is not the last one that was written"
    }

    private func knownFault() -> String? {
        if let newest = known.keys.max(), newest > last.sequence {
            return "entry \(last.sequence + 1) is missing: an earlier verification found entry \(newest)"
        }
        if let hash = known[start.sequence]?.hash, start.sequence > 0, hash != start.hash {
            return "entry \(start.sequence) was changed: an earlier verification found another hash"
        }
        // The time of a deleted entry is compared in whole milliseconds, as its line has it. An entry that was written
        // while a clock was ahead proves nothing.
        for (sequence, entry) in known.sorted(by: { $0.key < $1.key }) where sequence <= start.sequence {
            guard let cut, entry.at > cut.cut.at, entry.at <= now else { continue }
            return "entry \(sequence) is missing: it was too young to be deleted by entry \(cut.sequence)"
        }
        return nil
    }
}

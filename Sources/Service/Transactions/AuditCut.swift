import Values

/// What the deletion of expired entries has cut from the beginning of a chain. The entry that names it belongs to the
/// chain itself, so a later cut cannot be invented without a change of entries that others know.
struct AuditCut: Sendable, Equatable, JSONWritable {
    /// The last deleted entry, and its hash: the chain goes on behind it.
    var through: Int
    var hash: String
    /// The newest time among the deleted entries.
    var at: Timestamp
    /// The number of days for which entries were kept.
    var keptDays: Int

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("through", through)
            writer.member("hash", hash)
            writer.member("at", at)
            writer.member("keptDays", keptDays)
        }
    }

    /// The parts of the entry's hash.
    var parts: [String?] { ["\(through)", hash, "\(at.microseconds)", "\(keptDays)"] }
}

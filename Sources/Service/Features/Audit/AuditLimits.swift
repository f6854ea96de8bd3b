/// The limits of the audit log, each with its reason.
enum AuditLimits {
    /// Items of a page.
    static let pageMax = 100
    /// Expired entries of a tenant that one pass deletes, while other writes wait. This is enough for a tenant with
    /// sixteen entries a second.
    static let prunedAtOnceMax = 10_000
    /// Tenants whose secrets are in memory, about 100 bytes each. Above this number, they are read again.
    static let secretsMax = 10_000
    /// Seconds of the window in which calls of frequent kinds are counted. Until its end, the numbers are not part of
    /// the chain.
    static let windowSeconds: Int64 = 60
    /// Counted windows that one transaction turns into entries. A window has one for each backend and kind of call.
    static let windowsAtOnceMax = 1000
    /// Seconds between two passes that end windows.
    static let windowsSeconds = 10
    /// Seconds between two passes that delete expired entries.
    static let pruningSeconds = 600
    /// How long an expired entry waits for others. Each deletion adds an entry, so a deletion for each expired entry would
    /// never let the log become shorter.
    static let cutSeconds: Int64 = 3600
    /// How far the clock of another replica may be ahead. An entry with a later time was written while a clock was wrong.
    static let clockSkewSeconds: Int64 = 3600
}

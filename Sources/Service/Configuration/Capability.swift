import Values

/// What a backend may do, if its key or its token limits it. Without a limit it may do everything.
///
/// Each operation requires one of them from a backend, whatever role it requires (``Endpoint/capability``).
enum Capability: String, Sendable, CaseIterable {
    /// Create notifications, and events that become notifications.
    case notify
    /// Publish the app's own events.
    case publish
    /// Send changes of the app's rows.
    case rows
    /// Read what backends can see, and open streams.
    case read
    /// Erase a person, follow the erasure, and export the person's data.
    case erase
    /// Everything else: revocations, writes in the name of users, shops, challenges, failed webhooks.
    case manage

    /// Reads a word of a setting or of a claim: `notify`, `bellhop:notify`, `bellhop/notify`. Returns nil for another
    /// word.
    init?(word: some StringProtocol) {
        let prefix = ["bellhop:", "bellhop/"].first { word.hasPrefix($0) }
        self.init(rawValue: String(word.dropFirst(prefix?.count ?? 0)))
    }

    /// Returns the reason why a word is no capability.
    static func fault(of word: some StringProtocol) -> String {
        "\(word) is not a capability; \(allCases.map(\.rawValue).hint(for: word))"
    }
}

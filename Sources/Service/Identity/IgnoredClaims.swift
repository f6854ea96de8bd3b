import Logging
import Threads

/// The claims of verified tokens that would give a right, but that no setting names.
///
/// They are counted, and logged once by name: otherwise an operator whose issuer writes `role` at the top of its tokens
/// would only see users without rights.
final class IgnoredClaims: Sendable {
    /// A claim that does not count.
    struct Claim: Hashable {
        let name: String
        /// The claim of the settings that it would be.
        let meaning: Settings.Claim
    }

    /// The names that issuers and apps use at the top of a payload. Only these are examined, so the names are bounded.
    static let names = [
        Claim(name: "role", meaning: .role), Claim(name: "user_role", meaning: .role),
        Claim(name: "tenant", meaning: .tenant), Claim(name: "school_id", meaning: .tenant),
        Claim(name: "student_id", meaning: .student), Claim(name: "class_ids", meaning: .classes),
        Claim(name: "child_ids", meaning: .children), Claim(name: "shop_ids", meaning: .shops),
        Claim(name: "tier", meaning: .tier),
    ]

    private let counts = Locked([String: Int]())
    private let settings: Settings
    private let logger: Logger

    init(_ settings: Settings, metrics: MetricsRegistry, logger: Logger) {
        (self.settings, self.logger) = (settings, logger)
        metrics.register { [counts] text in
            let counts = counts.withLock { $0 }
            text.family(
                "bellhop_ignored_claims_total", .counter,
                "Verified tokens with a claim that would give a right, if a setting named it.", by: "claim",
                samples: Self.names.map { ($0.name, counts[$0.name] ?? 0) })
        }
    }

    /// Counts the ignored claims of a verified token.
    func note(_ claims: [Claim]) {
        guard !claims.isEmpty else { return }
        let new = counts.withLock { counts in
            claims.filter { claim in
                counts[claim.name, default: 0] += 1
                return counts[claim.name] == 1
            }
        }
        for claim in new {
            let paths = (settings.claims[claim.meaning] ?? []).map(\.text) + [claim.name]
            logger.warning(
                "A token has a claim that does not count, because no setting names it.",
                metadata: [
                    "claim": "\(claim.name)",
                    "remedy": """
                    if your issuer alone decides this claim, set \
                    \(claim.meaning.setting.variable)=\(paths.joined(separator: ","))
                    """,
                ])
        }
    }
}

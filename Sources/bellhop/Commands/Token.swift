import ArgumentParser
import Service
import Values

struct Token: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Create a development token (HS256).",
        usage: "bellhop token --subject <subject> [--role <role>] [<options>]",
        discussion: """
            Signs the token with the secret in the service's settings, and prints only the token. Its claims stand where \
            these settings look for them, with the issuer and the audience that they require.

              bellhop token --subject ada
              bellhop token --subject backend --role service_role --lifetime 12h
              bellhop token --subject sam --role staff \\
                --claim 'app_metadata.shop_ids=["s1"]'
            """)

    @Option(help: "User of the token.")
    var subject: String

    @Option(help: "Role, such as service_role, staff or admin.")
    var role: String?

    @Option(help: "Tenant.")
    var tenant: String?

    @Option(
        name: .customLong("claim"),
        help: ArgumentHelp("Additional claim as JSON or text; dots nest. Repeatable.", valueName: "name=value"))
    var claims: [String] = []

    @Option(help: "Lifetime, such as 90s, 15m, 1h or 7d.", transform: Lifetime.init(text:))
    var lifetime = Lifetime(seconds: 3600)

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        let mint = try await TokenMint.load(settings)
        if let role, !mint.roles.contains(role) {
            Terminal.note("bellhop: the role “\(role)” gives no right; \(mint.roles.hint(for: role))")
        }
        var token = DevelopmentToken(user: subject, role: role, tenant: tenant, lifetimeSeconds: lifetime.seconds)
        for claim in claims { token.claims = try Token.adding(claim, to: token.claims) }
        Terminal.line(try mint.signed(token))
    }

    func validate() throws {
        guard !subject.isEmpty else { throw ValidationError("--subject must not be empty.") }
        for claim in claims { _ = try Token.adding(claim, to: [:]) }
    }

    static func adding(_ claim: String, to claims: [String: JSONValue]) throws -> [String: JSONValue] {
        guard let equals = claim.firstIndex(of: "="), equals > claim.startIndex else {
            throw ValidationError("“\(claim)” is not a claim: write name=value.")
        }
        let text = String(claim[claim.index(after: equals)...])
        let value = (try? JSONValue(parsing: Array(text.utf8))) ?? .string(text)
        return TokenMint.adding(value, at: String(claim[..<equals]), to: claims)
    }
}

/// The lifetime of a token in a readable form: 90s, 15m, 1h, 7d.
struct Lifetime: CustomStringConvertible {
    let seconds: Int

    var description: String { seconds % 3600 == 0 ? "\(seconds / 3600)h" : "\(seconds)s" }
}

extension Lifetime {
    init(text: String) throws {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600, "d": 86400]
        let unit = text.last.flatMap { units[$0] }
        let digits = unit == nil ? text : String(text.dropLast())
        guard let count = Int(digits), count > 0, count <= 3650 * 86400 / (unit ?? 1) else {
            throw ValidationError("“\(text)” is not a lifetime: write 90s, 15m, 1h or 7d (at most 3650d).")
        }
        seconds = count * (unit ?? 1)
    }
}

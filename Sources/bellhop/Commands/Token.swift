import ArgumentParser
import BellhopCalls
import Service

struct Token: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Create a development token (HS256).",
        usage: "bellhop token --subject <subject> [--role <role>] [<options>]",
        discussion: """
            Signs the token with BELLHOP_JWT_SECRET, which must be the service's secret, and prints only the token.

              bellhop token --subject ada
              bellhop token --subject backend --role service_role --lifetime 12h
              bellhop token --subject sam --role staff \\
                --claim 'app_metadata.shop_ids=["s1"]'
            """)

    @Option(help: "User of the token (sub).")
    var subject: String

    @Option(help: "Role, such as service_role, staff or admin (app_metadata.user_role).")
    var role: String?

    @Option(help: "Tenant (app_metadata.tenant).")
    var tenant: String?

    @Option(
        name: .customLong("claim"),
        help: ArgumentHelp("Additional claim as JSON or text; dots nest. Repeatable.", valueName: "name=value"))
    var claims: [String] = []

    @Option(help: "Lifetime, such as 90s, 15m, 1h or 7d.", transform: Lifetime.init(text:))
    var lifetime = Lifetime(seconds: 3600)

    func run() async throws {
        let secret = try DevelopmentToken.requireSecret()
        if let role, TokenRole(rawValue: role) == nil {
            let known = TokenRole.allCases.map(\.rawValue).joined(separator: ", ")
            Terminal.note("bellhop: “\(role)” gives only what your file of tables grants to it. Known roles: \(known).")
        }
        var token = DevelopmentToken(subject: subject, role: role, tenant: tenant)
        for claim in claims { try Token.add(claim, to: &token.claims) }
        token.lifetimeSeconds = lifetime.seconds
        Terminal.line(token.signed(with: secret))
    }

    func validate() throws {
        guard !subject.isEmpty else { throw ValidationError("--subject must not be empty.") }
        var sink: [String: JSON] = [:]
        for claim in claims { try Token.add(claim, to: &sink) }
    }

    static func add(_ claim: String, to claims: inout [String: JSON]) throws {
        guard let equals = claim.firstIndex(of: "="), equals > claim.startIndex else {
            throw ValidationError("“\(claim)” is not a claim: write name=value.")
        }
        let path = claim[..<equals].split(separator: ".").map(String.init)
        let text = String(claim[claim.index(after: equals)...])
        claims = set((try? JSON(parsing: text)) ?? .string(text), at: path[...], in: claims)
    }

    private static func set(_ value: JSON, at path: ArraySlice<String>, in object: [String: JSON]) -> [String: JSON] {
        guard let name = path.first else { return object }
        var object = object
        let rest = path.dropFirst()
        object[name] = rest.isEmpty ? value : .object(set(value, at: rest, in: object[name]?.object ?? [:]))
        return object
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

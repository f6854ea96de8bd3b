import Domain
import Foundation
import TestSupport
import Testing

@testable import Service

/// An invalid setting is reported under the names that an operator knows.
@Suite(.timed) struct SettingsTests {
    private func mistake(_ values: [String: String]) -> String {
        do {
            _ = try TestService.settings(values)
            return "none"
        } catch {
            return "\(error)"
        }
    }

    @Test func missingKeys_areNamedByTheirVariables() {
        #expect(mistake([:]).contains("set BELLHOP_JWT_ISSUER (the URL of your identity provider), BELLHOP_JWKS"))
    }

    @Test func shortSecrets_areNamedByTheirVariables_andNotShown() {
        let short = mistake(["jwtSecret": "hush"])
        #expect(short.hasPrefix("jwtSecret (BELLHOP_JWT_SECRET): must have at least 32 bytes"))
        let changes = mistake(["jwtSecret": TestService.secret, "changesSecret": "hush"])
        #expect(changes.hasPrefix("changesSecret (BELLHOP_CHANGES_SECRET): "))
        #expect(!short.contains("hush"))
        #expect(!changes.contains("hush"))
    }

    /// Every setting that is a number, a Boolean or one of several words.
    @Test func everyMistake_namesItsSetting_andItsVariable() {
        let free: Set = [
            "host", "appName", "jwtSecret", "jwks", "jwtIssuer", "jwtAudience", "jwtTenant",
            "changesSecret", "consoleTokens",
        ]
        for key in Settings.catalog where !free.contains(key.name) && !key.name.hasPrefix("claim") {
            let text = mistake([key.name: "no such thing"].merging(["jwtSecret": TestService.secret]) { $1 })
            #expect(text.hasPrefix("\(key.name) (\(key.variable)): "), "\(text)")
        }
    }

    /// A variable without a text is not set, for every setting.
    @Test func emptyLists_areTheDefault_andListsOfNothingAreRefused() throws {
        let settings = try TestService.settings([
            "jwtSecret": TestService.secret, "webhookPriorities": "", "pushPriorities": "", "pushTypes": "",
        ])
        #expect(settings.webhookPriorities == [.urgent, .high] && settings.pushPriorities == [.urgent, .high])
        #expect(!settings.pushTypes.isEmpty)
        for name in ["webhookPriorities", "pushPriorities", "pushTypes"] {
            let mistake = #expect(throws: Settings.Mistake.self) {
                try TestService.settings(["jwtSecret": TestService.secret, name: " , "])
            }
            #expect(mistake?.description.hasSuffix("must not be empty") == true)
        }
    }

    /// Such a value would start the service, and then match nothing, or give all users one tenant.
    @Test(arguments: [
        ("corsOrigins", "https://"), ("corsOrigins", "https://ada@app.example"), ("corsOrigins", "null"),
        ("corsOrigins", "https://*.app.example"), ("corsOrigins", "file://app"),
        ("corsOrigins", "https://app.example:0x50"),
        ("corsOrigins", "https://app.example:65536"), ("corsOrigins", "https://127.1"), ("corsOrigins", "capacitor://"),
        ("streamCookie", "a=b"), ("streamCookie", "a;b"),
        ("claimTenant", ","), ("claimRole", " , "), ("webhookPriorities", ","),
    ])
    func valuesWithoutEffect_areRefused(name: String, value: String) {
        let text = mistake([name: value, "jwtSecret": TestService.secret])
        #expect(text.hasPrefix("\(name) (BELLHOP_"), "\(text)")
    }

    /// The form in which browsers send an origin. `Tests/contract/origins.py` compares it with that of Node.
    @Test(arguments: [
        ("https://App.Example", "https://app.example"), ("HTTPS://app.example/", "https://app.example"),
        ("https://app.example:443", "https://app.example"), ("http://app.example:80/", "http://app.example"),
        ("https://app.example:80", "https://app.example:80"), ("http://[0:0:0:0:0:0:0:1]:3000", "http://[::1]:3000"),
        ("http://localhost:5173", "http://localhost:5173"), ("Capacitor://localhost/", "capacitor://localhost"),
        ("*", "*"),
    ])
    func origins_haveTheFormOfBrowsers(text: String, origin: String) throws {
        let settings = try TestService.settings(["jwtSecret": TestService.secret, "corsOrigins": text])
        #expect(settings.corsOrigins == [origin])
    }

    @Test(arguments: [
        ("https://App.example/path", "did you mean https://app.example?"),
        ("https://app.example?x", "did you mean https://app.example?"),
        ("https://app.example:3000/#a", "did you mean https://app.example:3000?"),
        ("app.example", "did you mean https://app.example?"), ("*.app.example", "List each origin"),
        ("https://münchen.example", "punycode"),
    ])
    func wrongOrigins_areRefusedWithTheRightOne(text: String, remedy: String) {
        let mistake = mistake(["jwtSecret": TestService.secret, "corsOrigins": "https://a.example,\(text)"])
        #expect(mistake.hasPrefix("corsOrigins (BELLHOP_CORS_ORIGINS): \(text) is not"), "\(mistake)")
        #expect(mistake.contains(remedy), "\(mistake)")
    }

    /// A rotation with the same secret twice would rotate nothing.
    @Test func secretsOfWebhooks_areDifferent() {
        let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
        for (name, variable) in [
            ("webhookSecrets", "BELLHOP_WEBHOOK_SECRETS"), ("changesSigningSecrets", "BELLHOP_CHANGES_SIGNING_SECRETS"),
        ] {
            let mistake = mistake(["jwtSecret": TestService.secret, name: "\(secret),\(secret)"])
            #expect(mistake.hasPrefix("\(name) (\(variable)): has the same secret twice"), "\(mistake)")
        }
    }

    @Test func names_becomeFlagsAndVariables() throws {
        let key = try #require(Settings.catalog.first { $0.name == "rateLimitUser" })
        #expect(key.flag == "--rate-limit-user")
        #expect(key.variable == "BELLHOP_RATE_LIMIT_USER")
    }
}

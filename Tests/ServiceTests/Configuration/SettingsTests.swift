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

    /// Such a value starts the service, and then matches nothing, or gives all users one tenant.
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

    @Test(arguments: [
        ("corsOrigins", "https://app.example/path"), ("corsOrigins", "https://app.example?x"),
        ("corsOrigins", "https://"), ("corsOrigins", "https://ada@app.example"),
        ("streamCookie", "a=b"), ("streamCookie", "a;b"),
        ("claimTenant", ","), ("claimRole", " , "), ("webhookPriorities", ","),
    ])
    func valuesWithoutEffect_areRefused(name: String, value: String) {
        let text = mistake([name: value, "jwtSecret": TestService.secret])
        #expect(text.hasPrefix("\(name) (BELLHOP_"), "\(text)")
    }

    @Test func names_becomeFlagsAndVariables() throws {
        let key = try #require(Settings.catalog.first { $0.name == "rateLimitUser" })
        #expect(key.flag == "--rate-limit-user")
        #expect(key.variable == "BELLHOP_RATE_LIMIT_USER")
    }
}

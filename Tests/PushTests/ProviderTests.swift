import Cryptography
import TestSupport
import Testing

@testable import Push

/// The list of providers, and what all providers have in common.
@Suite(.timed) struct ProviderTests {
    /// Routes, stored addresses and settings would be those of another provider.
    @Test func providers_differInNamesLettersAndSettings() throws {
        let (names, settings) = (
            PushProviders.all.map { $0.name }, PushProviders.all.flatMap { $0.settings }.map(\.name)
        )
        #expect(Set(names).count == names.count && Set(settings).count == settings.count)
        #expect(names.allSatisfy { !$0.contains(" ") })
        let letters = try Self.addresses().map { type(of: $0).letter }
        #expect(letters.count == names.count && Set(letters).count == letters.count)
        #expect(PushProviders.all.allSatisfy { !$0.settings.isEmpty })
    }

    /// One address of each provider.
    private static func addresses() throws -> [any PushAddress] {
        [APNs.Address(token: "ab"), FCM.Address(token: "t1"), try WebPushTests.subscription()]
    }

    @Test func storedAddresses_areReadByTheirProviderAlone() throws {
        let providers = try Self.providers()
        let app = PushApp(id: "com.example.two", isSandbox: true)
        let addresses = try Self.addresses() + [APNs.Address(token: "ab", of: app)]
        for address in addresses {
            let found = providers.compactMap { $0.target(stored: address.stored) }
            #expect(found.count == 1 && found[0].address.stored == address.stored)
            #expect(found.first.map { isEqual($0.address, address) } == true, "\(address)")
        }
        for malformed in ["", "a", "a0", "a\u{0}ab", "x", "w", "wabc"] {
            #expect(providers.allSatisfy { $0.target(stored: Array(malformed.utf8)) == nil }, "\(malformed)")
        }
    }

    private func isEqual<Address: PushAddress>(_ first: Address, _ second: any PushAddress) -> Bool {
        second as? Address == first
    }

    private static func providers() throws -> [any PushProvider] {
        [
            APNs(APNs.Account(key: PrivateKey(), keyId: "k", team: "t", topic: "app")), FCM(try FCMTests.account.get()),
            WebPush(WebPush.Account(key: PrivateKey(), contact: "mailto:ops@example.com"), services: ["*.example.net"]),
        ]
    }

    /// Each service has a route of its own.
    @Test func routes_nameTheProviderAndItsService() throws {
        let sandbox = APNs.Address(token: "ab", of: PushApp(id: nil, isSandbox: true))
        let addresses = try Self.addresses() + [sandbox]
        let routes = try addresses.map { address in
            try #require(try Self.providers().compactMap { $0.target(stored: address.stored) }.first).route
        }
        #expect(routes == ["apns", "fcm", "webpush *.example.net", "apns sandbox"])
        for (route, name) in zip(routes, ["apns", "fcm", "webpush", "apns"]) {
            #expect(PushProviders.all.filter { $0.isOn(route) }.map { $0.name } == [name])
        }
        #expect(!APNs.isOn("apns2") && !APNs.isOn("devices"))
    }
}

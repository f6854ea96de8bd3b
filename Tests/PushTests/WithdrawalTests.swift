import Cryptography
import TestSupport
import Testing

@testable import Push

/// Backends choose ids of conversations, which are parts of tags.
@Suite(.timed) struct WithdrawalTests {
    private static let tags = (0..<40).map { "conversation:\($0)" + String(repeating: "\"", count: 120) }

    @Test(arguments: [APNs.Address(token: "ab"), FCM.Address(token: "t1")] as [any PushAddress])
    func withdrawals_takeTheFirstThatFit(_ address: any PushAddress) {
        let fitting = message(.withdrawal, withdrawn: Self.tags).fitting(address)
        #expect(address.payload(of: fitting).count <= PushLimits.payloadBytesMax)
        #expect(fitting.withdrawn.count >= 1 && fitting.withdrawn == Array(Self.tags.prefix(fitting.withdrawn.count)))
        let short = message(.withdrawal, withdrawn: ["n1", "n2"])
        #expect(short.fitting(address).withdrawn == short.withdrawn)
    }

    @Test func alertsOfBrowsers_keepTheirText() throws {
        let body = String(repeating: "\"", count: PushLimits.bodyBytesMax)
        let subscription = try WebPushTests.subscription()
        let alert = message(.alert(title: "a", body: body, isSilent: false), withdrawn: Self.tags)
        let fitting = alert.fitting(subscription)
        #expect(!fitting.withdrawn.isEmpty && fitting.withdrawn.count < Self.tags.count)
        let payload = WebPush.payload(fitting)
        let encrypted = WebPush.encrypted(
            payload, for: subscription, key: PrivateKey(), salt: AESGCM.randomBytes(16))
        #expect(encrypted.count <= PushLimits.payloadBytesMax)
        #expect(encrypted.count - payload.count == PushLimits.payloadBytesMax - WebPush.payloadBytesMax)
    }
}

import BellhopClient
import Database
import Domain
import TestSupport
import Testing
import Values

@testable import Service

/// The turns of tenants in an outbox: the backlog of one tenant does not delay the webhooks of another.
@Suite(.timed) struct OutboxTurnsTests {
    private static func notify(_ user: String, of tenant: String, _ service: TestService) async throws {
        let made = try await service.call(
            "POST", "/v1/notifications", as: .service(tenant: tenant),
            model: NotificationsTests.draft("visit", .high, to: user))
        #expect(made.status == 201, "\(made.refusal)")
    }

    /// The outbox of a service that sends nothing before the clock advances, and a moment when everything in it is due.
    private struct Backlog {
        let probe: WebhookProbe
        let now: Timestamp
        private let store: DatabaseStore

        init(_ counts: [(tenant: String, count: Int)]) async throws {
            probe = try WebhookProbe()
            for (tenant, count) in counts {
                for user in 0..<count {
                    try await OutboxTurnsTests.notify("\(tenant)-\(user)", of: tenant, probe.service)
                }
            }
            (now, store) = (probe.service.clock.now.adding(seconds: 60), probe.service.app.store)
        }

        /// Chooses rows, begins their attempts, and returns their tenants.
        func begin(_ limit: Int, _ turns: inout OutboxTurns) throws -> [String] {
            let chosen = try store.read { try turns.choose(limit, of: WebhookType.channel, at: now, nil, in: $0) }
            for lane in chosen { turns.began(lane.id, of: lane.tenant) }
            return chosen.map(\.tenant.text)
        }
    }

    @Test func tenants_takeTurns_andEachInTheOrderOfTheDueTimes() async throws {
        let backlog = try await Backlog([("a", 5), ("b", 1), ("c", 2)])
        var turns = OutboxTurns(tenantMax: 100, minute: MinuteShares { _ in 0 })
        #expect(try backlog.begin(3, &turns) == ["a", "b", "c"])
        #expect(try backlog.begin(1, &turns) == ["a"])
        #expect(try backlog.begin(1, &turns) == ["c"])
        #expect(try backlog.begin(10, &turns) == ["a", "a", "a"])
        #expect(try backlog.begin(10, &turns).isEmpty)
        #expect(turns.count == 8)
    }

    @Test func tenant_hasItsPartOfTheAttempts() async throws {
        let backlog = try await Backlog([("a", 5), ("b", 1)])
        var turns = OutboxTurns(tenantMax: 2, minute: MinuteShares { _ in 0 })
        // The first query finds the oldest rows, all of the first tenant; the next one looks for the other tenants.
        #expect(try backlog.begin(4, &turns) == ["a", "a", "b"])
        #expect(try backlog.begin(4, &turns).isEmpty)
        turns.ended(try #require(turns.lanes.min()))
        #expect(try backlog.begin(4, &turns) == ["a"])
    }

    @Test func tenantThatHasUsedItsMinute_waits() async throws {
        let backlog = try await Backlog([("a", 3), ("b", 2)])
        var turns = OutboxTurns(tenantMax: 100, minute: MinuteShares { $0 == "a" ? 1 : 0 })
        #expect(try backlog.begin(2, &turns) == ["a", "b"])
        #expect(try backlog.begin(10, &turns) == ["b"])
        #expect(turns.minute.throttledCount == 1)
        for number in turns.lanes { turns.ended(number) }
        #expect(try backlog.begin(10, &turns) == ["b", "b"])
    }

    /// Too many messages wait. Messages of the tenant with the most are evicted, the oldest first.
    @Test func excess_isCutFromTheTenantWithTheMost() async throws {
        let backlog = try await Backlog([("quiet", 1), ("noisy", 6)])
        let (store, now) = (backlog.probe.service.app.store, backlog.now)
        let evicted = try await store.write { db in
            let figures = try #require(try Outbox.figures(at: now, in: db)[.webhooks])
            return try Outbox.evict(.webhooks, figures, waitingMax: 3, at: now, in: db).count
        }
        #expect(evicted == 4)
        #expect(try backlog.probe.rows("tenant = 'quiet' AND state = 0") == 1)
        #expect(try backlog.probe.rows("tenant = 'noisy' AND state = 0") == 2)
        #expect(try backlog.probe.rows("tenant = 'noisy' AND state = 2 AND user_id IN ('noisy-0', 'noisy-3')") == 2)
    }

    /// The receiver does not answer to the webhooks of one tenant. Places remain for another tenant.
    @Test func silenceForOneTenant_delaysNoOther() async throws {
        let speaking = Gate()
        let probe = try WebhookProbe { delivery in
            if String(decoding: delivery.body, as: UTF8.self).contains("noisy") { speaking.wait() }
            return .status(200)
        }
        defer { speaking.open() }
        for user in 0..<(WebhookLimits.slots + 4) {
            try await Self.notify("noisy-\(user)", of: "noisy", probe.service)
        }
        probe.passTime()
        _ = try await probe.deliveries(WebhookLimits.tenantSlots)
        try await Self.notify("quiet-1", of: "quiet", probe.service)
        probe.passTime()
        let sent = try await probe.deliveries(WebhookLimits.tenantSlots + 1)
        #expect(sent.filter { $0.user == "quiet-1" }.count == 1)
        #expect(sent.count == WebhookLimits.tenantSlots + 1)
    }

    @Test func webhooksBeyondTheLimit_waitForTheNextMinute() async throws {
        let probe = try WebhookProbe(["webhookLimitTenant": "2", "tenantShares": "big:webhooks=5"])
        for tenant in ["small", "big"] {
            for user in 0..<4 { try await Self.notify("\(tenant)-\(user)", of: tenant, probe.service) }
        }
        probe.passTime()
        _ = try await probe.deliveries(6)
        try await eventually("the counts are published", step: { probe.service.clock.advance(seconds: 2) }) {
            let text = try await probe.service.call("GET", "/metrics").text
            let isPublished =
                text.contains("\nbellhop_tenant_webhooks_waiting{tenant=\"small\"} 2\n")
                && text.contains("\nbellhop_webhooks_throttled_tenants 1\n")
            // On a busy machine the next minute may begin before.
            return try isPublished || probe.received.count > 6
        }
        probe.service.clock.advance(seconds: 60)
        let sent = try await probe.deliveries(8)
        #expect(Set(sent.map(\.user)).count == 8)
        let minutes = Dictionary(grouping: sent.filter { $0.user.hasPrefix("small") }) {
            (Int($0.timestamp) ?? 0) / 60
        }
        #expect(minutes.count > 1 && minutes.values.allSatisfy { $0.count <= 2 })
    }
}

import CAllocations
import Database
import TestSupport
import Testing
import Values

@testable import Service

@Suite(.timed) struct StreamsAdmissionTests {
    private let owner = Owner(tenant: "t", userId: ID("u1"))

    private let neighbour = Owner(tenant: "t", userId: ID("u2"))
    private let stranger = Owner(tenant: "other", userId: ID("u1"))

    /// R-SCH-EC10: a user may have several streams, but not all of the service's.
    @Test func leases_areBounded_byUser() throws {
        let admission = StreamAdmission()
        var leases = try (0..<3).map { _ in try admission.lease(to: owner, max: 3, tenantMax: 0) }
        #expect(throws: StreamAdmission.Exhausted.user) { try admission.lease(to: owner, max: 3, tenantMax: 0) }
        for other in [neighbour, stranger] { _ = try admission.lease(to: other, max: 3, tenantMax: 0) }
        leases.removeLast()
        _ = try admission.lease(to: owner, max: 3, tenantMax: 0)
    }

    @Test func leases_areBounded_byTenant() throws {
        let admission = StreamAdmission()
        var leases = try [owner, owner, neighbour].map { try admission.lease(to: $0, max: 3, tenantMax: 3) }
        #expect(throws: StreamAdmission.Exhausted.tenant) { try admission.lease(to: neighbour, max: 3, tenantMax: 3) }
        _ = try admission.lease(to: stranger, max: 3, tenantMax: 3)
        leases.removeFirst()
        _ = try admission.lease(to: neighbour, max: 3, tenantMax: 3)
    }

    /// R-SCH-FR-002: a stream that never opened leaves no state.
    @Test func lease_isReleased_whenItsOwnerDisconnects() throws {
        let admission = StreamAdmission()
        for _ in 0..<100 { _ = try admission.lease(to: owner, max: 1, tenantMax: 1) }
    }

    /// The end of one stream costs the same beside 10,000 users as alone.
    @Test func release_costsTheSame_besideManyUsers() throws {
        let admission = StreamAdmission()
        var leases = try (0..<10_000).map {
            try admission.lease(to: Owner(tenant: "t", userId: ID("u\($0)")), max: 1, tenantMax: 0)
        }
        // The first call may create what all later ones use.
        leases.removeLast()
        let before = callocations_bytes()
        leases.removeLast()
        // A copy of the users would take more than 160 KB.
        #expect(callocations_bytes() - before < 16_384)
    }
}

@Suite(.timed) struct StreamsRevocationTests {
    private func caller(tenant: ID<Tenant> = "t", user: String = "u1", issuedAt: Int64 = 100) -> Caller {
        Caller(
            tenant: tenant, userId: ID(user), role: "user", isService: false, tier: nil,
            scope: Scope(tenant: tenant, keys: ["user:\(user)"]), tokenId: "token-\(user)",
            sessionId: "session-\(user)", issuedAt: Timestamp(microseconds: issuedAt),
            expiresAt: Timestamp(microseconds: 1_000_000))
    }

    private static let cases: [Revocation] = [
        .init(tenant: "t", kind: .token, subject: "token-u1"),
        .init(tenant: "t", kind: .session, subject: "session-u1"),
        .init(tenant: "t", kind: .user, subject: "u1", issuedBefore: Timestamp(microseconds: 101)),
    ]

    /// R-SCH-FR-002, R-SCH-NFR-004.
    @Test(arguments: cases)
    func revocation_coversItsToken_andNoOther(revocation: Revocation) {
        let list = RevocationList([revocation])
        for (caller, expected) in [
            (caller(), true), (caller(user: "u2"), false), (caller(tenant: "other"), false),
        ] {
            #expect(revocation.covers(caller) == expected)
            #expect(list.isRevoked(caller) == expected)
        }
    }

    @Test func tokenIssuedAfterwards_isValid() {
        let moment = Timestamp(microseconds: 100)
        let list = RevocationList([.init(tenant: "t", kind: .user, subject: "u1", issuedBefore: moment)])
        #expect(!list.isRevoked(caller(issuedAt: 100)))
        #expect(list.isRevoked(caller(issuedAt: 99)))
        // An earlier time that arrives later does not weaken the revocation.
        list.insert([.init(tenant: "t", kind: .user, subject: "u1", issuedBefore: Timestamp(microseconds: 50))])
        #expect(list.isRevoked(caller(issuedAt: 99)))
    }

    @Test(arguments: [
        "", "a-b-c-d", "n-0-1", "n-0-1-2-3", "n--1-2-3", "n-0-99999999999999999999-1", "n-0123456789ab",
        "n-0123456789abcd", "n-g123456789abc", "n-0123456789abC", "n--0123456789abc",
    ])
    func malformedStreamName_isRefused(text: String) {
        #expect(StreamName(text) == nil)
    }
}

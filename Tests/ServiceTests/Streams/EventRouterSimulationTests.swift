import TestSupport
import Testing

@testable import Service

@Suite(.timed) struct EventRouterSimulationTests {
    /// Users are members of clubs.
    private static let tables = """
        version: 1
        tables:
          - table: members
            primaryKey: [id]
            tenant: {constant: default}
            audience: {select: ["user:{user_id}"]}
            memberships:
              - {name: member, subject: "user:{user_id}", grants: "club:{club_id}"}
        """

    @Test func streamsGetWhatTheirScopesAndSubscriptionsAllow_onceAndInOrder_underAnySchedule() throws {
        let directory = try TemporaryDirectory()
        let service = try SteppedService(["tables": directory.write(Self.tables, to: "tables.yaml")])
        let runs = effort(quick: 100, full: 400, long: 30_000)
        let failure = Schedule.failure(seed: randomSeed(), runs: runs, repetitionsMax: 1_000) {
            EventRouterSimulation.run($0, service)
        }
        #expect(failure == nil, "\(failure ?? "")")
    }
}

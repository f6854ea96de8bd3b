import PostgresServer
import Testing

@testable import TestSupport

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

    private let service: SteppedService

    init() throws {
        let directory = try TemporaryDirectory()
        service = try SteppedService(["tables": directory.write(Self.tables, to: "tables.yaml")])
    }

    @Test func streamsGetWhatTheirScopesAndSubscriptionsAllow_onceAndInOrder_underAnySchedule() {
        let runs = effort(quick: 100, full: 400, long: 30_000) / (PostgresServer.isTheStore ? 20 : 1)
        let failure = Schedule.failure(seed: randomSeed(), runs: runs, repetitionsMax: 1_000) {
            EventRouterSimulation.run($0, service)
        }
        #expect(failure == nil, "\(failure ?? "")")
    }

    /// The process knows a membership as soon as it publishes it. A shard that is behind must not know it earlier than
    /// the events before it.
    @Test func eventBeforeAMembership_isNotDelivered_toAStreamWhoseTokenIsRenewed() throws {
        let streams = try EventRouterSimulation(Schedule(repeating: []), service)
        streams.open(0, on: 0)
        streams.goOn()
        streams.renew(0)
        try streams.commitEvent(of: 0, audience: ["club:1"])
        try streams.changeMembership(0)
        streams.finish()
        #expect(streams.found == nil)
    }

    /// Ada asks for missed rows, joins a club, and a row of the club follows, before the log is read.
    @Test func rowOfANewMembership_isNotLost_whileMissedRowsAreRead() throws {
        let streams = try EventRouterSimulation(Schedule(repeating: []), service)
        streams.open(0, on: 0)
        streams.goOn()
        streams.replaceTablesWithReplay(0)
        try streams.changeMembership(0)
        try streams.commitRow(of: 0, readers: ["club:1"])
        streams.finish()
        #expect(streams.found == nil)
    }
}

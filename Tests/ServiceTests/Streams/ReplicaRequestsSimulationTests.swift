import PostgresServer
import Testing

@testable import Service
@testable import TestSupport

@Suite(.timed) struct ReplicaRequestsSimulationTests {
    private let service: SteppedService

    init() throws { service = try SteppedService() }

    @Test func requestsAreAnsweredOnce_andNotPerformedAfterAFailure_underAnySchedule() {
        let runs = effort(quick: 1_000, full: 2_000, long: 100_000) / (PostgresServer.isTheStore ? 20 : 1)
        let failure = Schedule.failure(seed: randomSeed(), runs: runs, repetitionsMax: 2_000) {
            ReplicaRequestsSimulation.run($0, service)
        }
        #expect(failure == nil, "\(failure ?? "")")
    }

    /// A commit whose outcome is unknown may have stored the request, so that another replica performs it.
    @Test func requestWithAnUnknownCommit_isNotReportedAsFailed_beforeItIsPerformed() throws {
        let replicas = try ReplicaRequestsSimulation(Schedule(repeating: []), service)
        let stream = try replicas.stream(1)
        replicas.ask(replicas.replacing(stream.user), through: 0, about: stream, as: stream.user)
        replicas.commit(0, outcome: .unknownStored)
        for replica in [1, 0] { replicas.goOn(replica) }
        replicas.check()
        #expect(replicas.found == nil)
        #expect(replicas.isPerformed(1))
    }

    /// The replica receives the request in time, but its stream or its workers are slow.
    @Test func requestThatWaitsForItsStream_isNotPerformed_afterItWasReportedAsFailed() throws {
        let replicas = try ReplicaRequestsSimulation(Schedule(repeating: []), service)
        let stream = try replicas.stream(1)
        replicas.ask(replicas.replacingWithReplay(stream.user), through: 0, about: stream, as: stream.user)
        replicas.commit(0, outcome: .stored)
        replicas.deliver(1, 1)
        replicas.handle(1)
        replicas.pass(ReplicaRequests.patience)
        replicas.handle(0)
        replicas.goOn(1)
        replicas.check()
        #expect(replicas.found == nil)
        #expect(!replicas.isPerformed(1))
    }
}

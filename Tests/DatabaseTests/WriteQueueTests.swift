import TestSupport
import Testing

@testable import Database

/// How writers that share a queue form groups.
@Suite(.timed) struct WriteQueueTests {
    /// Longer than any test: a writer that waits for it would not end.
    private static let never: Duration = .seconds(3600)

    private static func job(lane: Int, of tenant: Int = 0) -> WriteJob {
        WriteJob(lane: WriteLane(lane, group: tenant), run: { _ in { _ in } }, fail: { _ in })
    }

    private static func add(_ count: Int, to queue: WriteQueue, from first: Int = 0) throws {
        for lane in first..<(first + count) { #expect(try queue.append(job(lane: lane))) }
    }

    /// Takes a group and commits it.
    private static func commitGroup(of queue: WriteQueue, by writer: Int = 0) -> Int {
        let taken = queue.take(512, by: writer)?.count ?? 0
        queue.finishCollecting(by: writer)
        queue.finishBatch(by: writer, isFull: false) { _ in }
        return taken
    }

    @Test func groupOfMany_isFollowedByAGroupThatWaitsForAsMany() async throws {
        let queue = WriteQueue(depthMax: 512, sharing: WriteSharing(writers: 2, collectingMax: Self.never))
        try Self.add(40, to: queue)
        #expect(Self.commitGroup(of: queue) == 40)
        try Self.add(39, to: queue)
        let next = Task.detached { Self.commitGroup(of: queue) }
        try Self.add(1, to: queue)
        #expect(await next.value == 40)
    }

    /// A full statement does not wait for more rows, even if more jobs are expected.
    @Test func group_waitsForNoMoreThanAFullStatement() throws {
        let queue = WriteQueue(depthMax: 512, sharing: WriteSharing(writers: 2, collectingMax: Self.never))
        try Self.add(200, to: queue)
        #expect(Self.commitGroup(of: queue) == 200)
        try Self.add(64, to: queue)
        #expect(Self.commitGroup(of: queue) == 64)
    }

    /// Two writers with a group each take turns. Their clients meet in one group.
    @Test func groupsOfTwoWriters_becomeOne() async throws {
        let queue = WriteQueue(depthMax: 512, sharing: WriteSharing(writers: 2, collectingMax: Self.never))
        for writer in 0..<2 {
            try Self.add(10, to: queue, from: writer * 10)
            #expect(queue.take(512, by: writer)?.count == 10)
            queue.finishCollecting(by: writer)
        }
        queue.finishBatch(by: 0, isFull: false) { _ in }
        try Self.add(10, to: queue, from: 20)
        let next = Task.detached { Self.commitGroup(of: queue) }
        queue.finishBatch(by: 1, isFull: false) { _ in }
        try Self.add(10, to: queue, from: 30)
        #expect(await next.value == 20)
    }

    @Test func singleClient_neverWaits() throws {
        let queue = WriteQueue(depthMax: 512, sharing: WriteSharing(writers: 4, collectingMax: Self.never))
        for _ in 0..<3 {
            try Self.add(1, to: queue)
            #expect(Self.commitGroup(of: queue) == 1)
        }
    }

    @Test func nextWriter_beginsDuringACommit_andNotBeforeIt() async throws {
        let queue = WriteQueue(
            depthMax: 512, sharing: WriteSharing(writers: 2, patience: Self.never, collectingMax: .zero))
        try Self.add(1, to: queue)
        #expect(queue.take(512, by: 0)?.count == 1)
        #expect(try queue.append(Self.job(lane: 7)))
        let isCommitting = Gate()
        let next = Task.detached { () -> Bool in
            let taken = queue.take(512, by: 1)
            return taken?.count == 1 && isCommitting.isOpen
        }
        isCommitting.open()
        queue.finishCollecting(by: 0)
        #expect(await next.value)
        queue.finishBatch(by: 0, isFull: false) { _ in }
        queue.finishBatch(by: 1, isFull: false) { _ in }
    }

    // MARK: Turns of tenants

    private static func lanes(_ jobs: [WriteJob]?) -> [Int]? { jobs?.map(\.lane.number) }

    @Test func tenants_takeTurns_andEachKeepsItsOrder() throws {
        let queue = WriteQueue(depthMax: 512)
        for lane in 10..<15 { #expect(try queue.append(Self.job(lane: lane, of: 1))) }
        for lane in 20..<22 { #expect(try queue.append(Self.job(lane: lane, of: 2))) }
        #expect(try queue.append(Self.job(lane: 30, of: 3)))
        #expect(Self.lanes(queue.take(4)) == [10, 20, 30, 11])
        #expect(try queue.append(Self.job(lane: 31, of: 3)))
        #expect(Self.lanes(queue.takeArrived(512)) == [21, 12, 31, 13, 14])
    }

    /// A group that took too long puts the rest back. The rest comes before the tenant's later jobs, and behind the first
    /// job of another tenant.
    @Test func jobsThatWerePutBack_areTheFirstOfTheirTenant() throws {
        let queue = WriteQueue(depthMax: 512)
        for lane in 10..<14 { #expect(try queue.append(Self.job(lane: lane, of: 1))) }
        let taken = try #require(queue.take(512))
        #expect(try queue.append(Self.job(lane: 14, of: 1)))
        #expect(try queue.append(Self.job(lane: 20, of: 2)))
        queue.putBack(Array(taken.dropFirst()))
        queue.finishBatch(isFull: false) { _ in }
        #expect(Self.lanes(queue.take(512)) == [11, 20, 12, 13, 14])
    }

    /// A lane that another writer holds is left out, and its tenant's other lanes keep their turns.
    @Test func tenantsTakeTurns_withSeveralWriters() throws {
        let queue = WriteQueue(
            depthMax: 512, sharing: WriteSharing(writers: 2, patience: .zero, collectingMax: .zero))
        #expect(try queue.append(Self.job(lane: 10, of: 1)))
        #expect(Self.lanes(queue.take(512, by: 0)) == [10])
        for lane in [10, 11, 12] { #expect(try queue.append(Self.job(lane: lane, of: 1))) }
        #expect(try queue.append(Self.job(lane: 20, of: 2)))
        #expect(Self.lanes(queue.take(512, by: 1)) == [20, 11, 12])
        queue.finishBatch(by: 0, isFull: false) { _ in }
        #expect(Self.lanes(queue.takeArrived(512, by: 1)) == [10])
    }

    /// The writes of other tenants find room while one tenant fills the queue, up to a bound.
    @Test func tenantThatFillsTheQueue_isRefused_andOthersAreNot() throws {
        let queue = WriteQueue(depthMax: 16)
        for lane in 0..<16 { #expect(try queue.append(Self.job(lane: lane, of: 1))) }
        #expect(throws: StoreBusy.self) { try queue.append(Self.job(lane: 16, of: 1)) }
        for tenant in [2, 3] { #expect(try queue.append(Self.job(lane: tenant, of: tenant))) }
        #expect(throws: StoreBusy.self) { try queue.append(Self.job(lane: 4, of: 4)) }
        #expect(queue.snapshot().refused == 2)
    }

    @Test func queueThatManyTenantsFill_refusesAll() throws {
        let queue = WriteQueue(depthMax: 16)
        for tenant in 0..<16 { #expect(try queue.append(Self.job(lane: tenant, of: tenant % 2))) }
        #expect(throws: StoreBusy.self) { try queue.append(Self.job(lane: 17, of: 17)) }
    }
}

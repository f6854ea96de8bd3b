/// The counters of a store since it was opened.
public struct StoreMetrics: Sendable, Hashable {
    /// Upper bounds of the buckets of `commitSecondsBuckets`; one more bucket counts the rest.
    public static let commitSecondsBounds: [Double] = [
        0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
    ]

    /// Groups committed.
    public internal(set) var batches = 0
    /// Jobs committed.
    public internal(set) var jobs = 0
    /// Jobs rolled back because of their own error.
    public internal(set) var jobsFailed = 0
    /// Groups lost because their commit, or the whole transaction, failed.
    public internal(set) var batchesFailed = 0
    /// Groups that were retried, because of a lost connection, a deadlock or a lock held elsewhere.
    public internal(set) var batchesRetried = 0
    public internal(set) var batchJobsLargest = 0
    /// Jobs refused because the queue was full.
    public internal(set) var refused = 0
    /// Time spent in COMMIT, including the fsync.
    public internal(set) var commitSeconds = 0.0
    /// The number of commits that took at most as long as the bound of the same index, not cumulative.
    public internal(set) var commitSecondsBuckets = [Int](repeating: 0, count: commitSecondsBounds.count + 1)
    public internal(set) var queueDepth = 0
    public internal(set) var queueDepthLargest = 0
    /// Pages in the WAL after the last commit.
    public internal(set) var walPages = 0
    public internal(set) var checkpoints = 0
    public internal(set) var checkpointsFailed = 0

    /// Returns the sum of two writers' metrics.
    func adding(_ other: StoreMetrics) -> StoreMetrics {
        var sum = self
        sum.batches += other.batches
        sum.jobs += other.jobs
        sum.jobsFailed += other.jobsFailed
        sum.batchesFailed += other.batchesFailed
        sum.batchesRetried += other.batchesRetried
        sum.batchJobsLargest = max(batchJobsLargest, other.batchJobsLargest)
        sum.refused += other.refused
        sum.commitSeconds += other.commitSeconds
        for (index, count) in other.commitSecondsBuckets.enumerated() { sum.commitSecondsBuckets[index] += count }
        sum.queueDepth += other.queueDepth
        sum.queueDepthLargest = max(queueDepthLargest, other.queueDepthLargest)
        return sum
    }

    mutating func countCommit(jobs count: Int, seconds: Double) {
        batches += 1
        jobs += count
        batchJobsLargest = max(batchJobsLargest, count)
        commitSeconds += seconds
        let bucket = Self.commitSecondsBounds.firstIndex { seconds <= $0 } ?? Self.commitSecondsBounds.count
        commitSecondsBuckets[bucket] += 1
    }
}

import Database

extension DatabaseStore {
    /// Registers the metrics of the store.
    func register(in registry: MetricsRegistry) {
        registry.register { [self] text in
            let metrics = metrics()
            text.single(
                "bellhop_database_size_bytes", .gauge, "Bytes on disk, including the write-ahead log.", value: sizeBytes
            )
            let trouble = self.trouble?.code
            text.family(
                "bellhop_database_trouble", .gauge, "1 while writes fail, by reason.",
                by: "reason",
                samples: [
                    ("failing", trouble == .unavailable ? 1 : 0), ("full", trouble == .full ? 1 : 0),
                    ("moved", trouble == .moved ? 1 : 0),
                ])
            text.single(
                "bellhop_database_commits_total", .counter, "Committed groups of writes.", value: metrics.batches)
            text.single("bellhop_database_writes_total", .counter, "Committed writes.", value: metrics.jobs)
            text.single(
                "bellhop_database_writes_undone_total", .counter, "Writes rolled back because of an error.",
                value: metrics.jobsFailed)
            text.single(
                "bellhop_database_commits_failed_total", .counter, "Groups of writes whose commit failed.",
                value: metrics.batchesFailed)
            text.single(
                "bellhop_database_groups_retried_total", .counter, "Groups of writes repeated after a lost connection.",
                value: metrics.batchesRetried)
            text.single(
                "bellhop_database_writes_refused_total", .counter, "Writes rejected because the queue was full.",
                value: metrics.refused)
            text.single("bellhop_database_queue_depth", .gauge, "Queued writes.", value: metrics.queueDepth)
            text.single("bellhop_database_wal_pages", .gauge, "Pages in the write-ahead log.", value: metrics.walPages)
            text.single(
                "bellhop_database_checkpoints_failed_total", .counter, "Failed checkpoints.",
                value: metrics.checkpointsFailed
            )
            text.family("bellhop_database_commit_duration_seconds", .histogram, "Duration of COMMIT, including fsync.")
            text.histogram(
                "bellhop_database_commit_duration_seconds", bounds: StoreMetrics.commitSecondsBounds,
                counts: metrics.commitSecondsBuckets, sum: metrics.commitSeconds)
        }
    }
}

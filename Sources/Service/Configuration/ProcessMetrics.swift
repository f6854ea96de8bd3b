import Database
import MicroHTTP
import Values

/// The metrics and build information of the process, with the names of Prometheus' own clients.
enum ProcessMetrics {
    /// - Parameter replica: The name of this replica. A page behind a load balancer uses it to distinguish replicas.
    static func register(in metrics: MetricsRegistry, _ settings: Settings, replica: String, startedAt: Timestamp) {
        let build = [
            ("version", BellhopVersion.text), ("store", settings.database.engine.rawValue.lowercased()),
            ("replica", replica),
        ]
        metrics.register { text in
            text.family("bellhop_build_info", .gauge, "Version of the service; always 1.")
            text.sample("bellhop_build_info", build, 1)
            text.single(
                "process_start_time_seconds", .gauge, "Start time of the process in seconds since 1970.",
                value: Double(startedAt.microseconds / 1000) / 1000)
            text.single(
                "process_cpu_seconds_total", .counter, "CPU time of the process in seconds.",
                value: ProcessUsage.processorSeconds)
            text.single(
                "process_resident_memory_bytes", .gauge, "Resident memory of the process.",
                value: ProcessUsage.residentBytes)
            text.single("process_open_fds", .gauge, "Open file descriptors.", value: ProcessUsage.openDescriptors)
            text.single(
                "process_max_fds", .gauge, "Maximum number of open file descriptors.",
                value: ServerConfiguration.descriptorsMax)
            text.single(
                "bellhop_process_allocated_bytes", .gauge, "Allocated memory that was not freed; grows with a leak.",
                value: ProcessUsage.allocatedBytes)
        }
    }
}

/// The version of this build.
public enum BellhopVersion {
    public static let text = "0.1.0"
}

import CMicroHTTPD
import Foundation
import Glibc

/// What the process has of the machine.
public enum ProcessUsage {
    /// All that is in memory, the mapped pages of files included; zero where the system does not say.
    public static var residentBytes: Int {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// What is allocated and not freed. Unlike what is resident it does not depend on what the allocator retains for later.
    public static var allocatedBytes: Int { Int(cmhd_allocated_bytes()) }

    /// Time of processors that it has taken.
    public static var processorSeconds: Double {
        var time = timespec()
        guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return 0 }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Descriptors that are open. Linux says it as the size of the folder since 6.2; before, they are counted, which takes
    /// some microseconds for each hundred.
    public static var openDescriptors: Int {
        var folder = stat()
        if stat("/proc/self/fd", &folder) == 0, folder.st_size > 0 { return Int(folder.st_size) }
        guard let entries = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(entries) }
        // Without itself, its parent, and the descriptor that reads it.
        var count = -3
        while readdir(entries) != nil { count += 1 }
        return count
    }
}

import CMicroHTTPD
import Foundation
import Glibc

public enum ProcessUsage {
    /// All resident memory, including mapped pages of files; zero if the system does not report it.
    public static var residentBytes: Int {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// Allocated memory that is not freed. Unlike resident memory, it does not depend on what the allocator retains.
    public static var allocatedBytes: Int { Int(cmhd_allocated_bytes()) }

    /// The processor time that the process has used.
    public static var processorSeconds: Double {
        var time = timespec()
        guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return 0 }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// The number of open descriptors. Since Linux 6.2 it is the size of the folder. Earlier kernels require counting,
    /// which takes some microseconds per hundred.
    public static var openDescriptors: Int {
        var folder = stat()
        if stat("/proc/self/fd", &folder) == 0, folder.st_size > 0 { return Int(folder.st_size) }
        guard let entries = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(entries) }
        // Excludes `.`, `..`, and the descriptor that reads the folder.
        var count = -3
        while readdir(entries) != nil { count += 1 }
        return count
    }
}

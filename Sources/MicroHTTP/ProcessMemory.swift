import CMicroHTTPD
import Foundation
import Glibc

/// What the process has of the machine's memory.
public enum ProcessMemory {
    /// All that is in memory, the mapped pages of files included; zero where the system does not say.
    public static var residentBytes: Int {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// What is allocated and not freed. Unlike what is resident it does not depend on what the allocator retains for later.
    public static var allocatedBytes: Int { Int(cmhd_allocated_bytes()) }
}

import Foundation
import MicroHTTP

/// Checks of descriptors, disks, and the duration of a flush.
enum MachineCheck {
    /// Checks the limit of descriptors.
    ///
    /// - Parameter available: The limit of this process. The service has the same limit if it is started in the same
    ///   way.
    static func descriptors(
        _ settings: Settings, available: Int = ServerConfiguration.descriptorsMax
    ) -> [Finding] {
        let lowered = settings.serverConfiguration.within(descriptors: available)
        let limits = [
            ("streamsMax", settings.streamsMax, lowered.streamsMax),
            ("connectionsMax", settings.connectionsMax, lowered.connectionsMax),
        ].filter { $0.2 < $0.1 }
        guard !limits.isEmpty else {
            return [.good("descriptors", "\(available), enough for all streams and connections that are set")]
        }
        return limits.map { name, asked, allowed in
            .warning(
                "descriptors", "\(available) allow \(allowed) where \(name) asks for \(asked)",
                """
                raise the limit of the service (LimitNOFILE, ulimits), or set \(Settings.Key.variable(name)) to what it \
                really needs
                """)
        }
    }

    // MARK: Disks

    /// Returns the bytes that this user may still write; throws the reason why they are unknown.
    static func freeBytes(of folder: String) throws(SystemError) -> Int {
        var disk = statvfs()
        guard statvfs(folder, &disk) == 0 else { throw SystemError(errno) }
        return Int(clamping: UInt64(disk.f_bavail) &* UInt64(disk.f_frsize))
    }

    static func disk(freeBytes: Int, of folder: String) -> Finding {
        let text = "\(size(freeBytes)) are free below \(folder)"
        if freeBytes < DoctorLimits.freeBytesMin {
            return .fault("disk", text, "make room: when it is full nothing can be stored")
        }
        if freeBytes < DoctorLimits.freeBytesLow {
            return .warning("disk", text, "make room, or shorten \(Settings.Key.variable("eventsKeptHours"))")
        }
        return .good("disk", text)
    }

    static func temporaryFolder(_ folder: String) -> Finding {
        guard access(folder, W_OK | X_OK) == 0 else {
            return .warning(
                "temporary files", "\(folder) takes none: \(SystemError(errno))", "set TMPDIR to one that does")
        }
        guard let free = try? freeBytes(of: folder) else { return .good("temporary files", folder) }
        let text = "\(size(free)) are free below \(folder)"
        return free < DoctorLimits.temporaryBytesLow
            ? .warning("temporary files", text, "make room, or set TMPDIR") : .good("temporary files", text)
    }

    // MARK: Flushes

    /// Measures how long small writes take until they are on disk. The file is unlinked before it is written.
    static func flushSeconds(in folder: String, count: Int = DoctorLimits.flushes) throws(SystemError) -> [Double] {
        var name = Array("\(folder)/.bellhop-doctor-\(String(repeating: "X", count: 6))".utf8CString)
        let file = mkstemp(&name)
        guard file >= 0 else { throw SystemError(errno) }
        defer { close(file) }
        unlink(name)
        let page = [UInt8](repeating: 0x42, count: 4096)
        var seconds: [Double] = []
        for place in 0..<count {
            let begun = ContinuousClock.now
            guard pwrite(file, page, page.count, off_t(place * page.count)) == page.count, fdatasync(file) == 0 else {
                throw SystemError(errno)
            }
            seconds.append((.now - begun) / .seconds(1))
        }
        return seconds.sorted()
    }

    /// Returns the finding about flushes.
    ///
    /// - Parameter seconds: The duration of each flush, in ascending order.
    static func flushes(_ seconds: [Double]) -> Finding {
        let (median, most) = (seconds[seconds.count / 2], seconds[seconds.count - 1])
        let text = "a flush takes \(milliseconds(median)) at the median, \(milliseconds(most)) at most"
        guard median > DoctorLimits.flushSecondsHigh || most > DoctorLimits.flushSecondsMax else {
            return .good("flushes", text)
        }
        return .warning(
            "flushes", text,
            "each commit waits for one: put the database on a local disk that is not shared or throttled")
    }

    // MARK: Formatting

    static func size(_ bytes: Int) -> String {
        bytes < 1 << 30 ? "\(bytes >> 20) MiB" : "\(bytes >> 30) GiB"
    }

    static func milliseconds(_ seconds: Double) -> String {
        "\((seconds * 100_000).rounded() / 100) ms"
    }
}

/// The system's message about a failed call.
struct SystemError: Error, CustomStringConvertible {
    let description: String

    init(_ code: Int32) { description = String(cString: strerror(code)) }
}

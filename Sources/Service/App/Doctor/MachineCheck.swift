import Foundation
import MicroHTTP
import OutboundHTTP

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
            (settings.$streamsMax, settings.streamsMax, lowered.streamsMax),
            (settings.$connectionsMax, settings.connectionsMax, lowered.connectionsMax),
        ].filter { $0.2 < $0.1 }
        let short = limits.filter { settings.demandsLimit($0.0, allowed: $0.2) }
        guard !limits.isEmpty else {
            return [.good("descriptors", "\(available), enough for the maximum number of streams and connections")]
        }
        guard !short.isEmpty else {
            return [
                .good(
                    "descriptors",
                    "\(available), enough for \(lowered.streamsMax) streams and \(lowered.connectionsMax) connections")
            ]
        }
        return short.map { setting, asked, allowed in
            .warning(
                "descriptors", "\(available) allow only \(allowed), but \(setting.name) is \(asked)",
                """
                raise the service's limit (LimitNOFILE, ulimits), or lower \(setting.variable) to the number \
                that you need
                """)
        }
    }

    // MARK: The address

    /// Checks that the service can listen on its address, or already does. Nil if it takes any free port.
    static func address(_ settings: Settings) -> Finding? {
        guard settings.port != 0 else { return nil }
        let place = "\(settings.host):\(settings.port)"
        do {
            try settings.serverConfiguration.requireFreeAddress()
            return .good("address", "\(place) is free")
        } catch {
            guard error.isAddressInUse else {
                return .fault(
                    "address", error.description,
                    "correct \(Settings.variable(\.$host)) or \(Settings.variable(\.$port))")
            }
            if isServing(settings) { return .good("address", "a Bellhop service answers on \(place)") }
            return .fault(
                "address", "another program listens on \(place)",
                """
                stop it (ss -ltnp 'sport = :\(settings.port)' shows it), or set \(Settings.variable(\.$port)) to a \
                free port
                """)
        }
    }

    /// Returns whether a Bellhop service answers on the address.
    private static func isServing(_ settings: Settings) -> Bool {
        let local = ["0.0.0.0": "127.0.0.1", "::": "::1"][settings.host] ?? settings.host
        let host = local.contains(":") ? "[\(local)]" : local
        let client = OutboundClient(allowsPrivate: true, timeoutSeconds: DoctorLimits.answerSeconds)
        var body: [UInt8] = []
        let answer = client.watch(OutboundProbe(url: "http://\(host):\(settings.port)/healthz")) { bytes in
            body += bytes
            return body.count <= 1024
        }
        return answer.status == 200 && answer.headers["x-request-id"] != nil
            && body.elementsEqual(#"{"status":"ok"}"#.utf8)
    }

    // MARK: Disks

    /// Returns the bytes that this user may still write; throws the reason why they are unknown.
    static func freeBytes(of folder: String) throws(SystemError) -> Int {
        var disk = statvfs()
        guard statvfs(folder, &disk) == 0 else { throw SystemError(errno) }
        return Int(clamping: UInt64(disk.f_bavail) &* UInt64(disk.f_frsize))
    }

    static func disk(freeBytes: Int, of folder: String) -> Finding {
        let text = "\(size(freeBytes)) free in \(folder)"
        if freeBytes < DoctorLimits.freeBytesMin {
            return .fault("disk", text, "free space: a full disk stops all writes")
        }
        if freeBytes < DoctorLimits.freeBytesLow {
            return .warning("disk", text, "free space, or lower \(Settings.variable(\.$eventsKeptHours))")
        }
        return .good("disk", text)
    }

    static func temporaryFolder(_ folder: String) -> Finding {
        guard access(folder, W_OK | X_OK) == 0 else {
            return .warning(
                "temporary files", "\(folder) is not writable: \(SystemError(errno))", "set TMPDIR to a writable folder"
            )
        }
        guard let free = try? freeBytes(of: folder) else { return .good("temporary files", folder) }
        let text = "\(size(free)) free in \(folder)"
        return free < DoctorLimits.temporaryBytesLow
            ? .warning("temporary files", text, "free space, or set TMPDIR") : .good("temporary files", text)
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
        let text = "a flush takes \(milliseconds(median)) (median), \(milliseconds(most)) (maximum)"
        guard median > DoctorLimits.flushSecondsHigh || most > DoctorLimits.flushSecondsMax else {
            return .good("flushes", text)
        }
        return .warning(
            "flushes", text,
            "each commit waits for a flush: put the database on a local disk that is not shared or throttled")
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

extension Settings {
    /// Whether the limit of descriptors lowers a limit that the operator has set, or leaves room for few streams.
    func demandsLimit(_ limit: Setting<Int>, allowed: Int) -> Bool {
        limit.isSet || (limit === $streamsMax && allowed < DoctorLimits.streamsLow)
    }
}

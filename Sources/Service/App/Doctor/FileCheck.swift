import Database
import Foundation

/// A check of an SQLite database file, whether or not a service runs on it.
struct FileCheck {
    private let settings: Settings
    private let path: String
    private var folder: String { URL(fileURLWithPath: path).deletingLastPathComponent().path }

    init(_ settings: Settings, path: String) {
        (self.settings, self.path) = (settings, URL(fileURLWithPath: path).path)
    }

    func examine(_ report: (Finding) -> Void) {
        guard access(folder, W_OK | X_OK) == 0 else {
            return report(
                .fault(
                    "database", "the folder \(folder) is not writable: \(SystemError(errno))",
                    "create it, and make the service's user its owner (65532 in the image)"))
        }
        do throws(SystemError) {
            report(MachineCheck.disk(freeBytes: try MachineCheck.freeBytes(of: folder), of: folder))
            report(MachineCheck.flushes(try MachineCheck.flushSeconds(in: folder)))
        } catch {
            report(.fault("disk", "cannot write to \(folder): \(error)", "repair the disk, or free space"))
        }
        guard access(path, F_OK) == 0 else {
            return report(.good("database", "\(path) does not exist yet; the service creates it at its start"))
        }
        for file in [path, path + "-wal", path + "-shm"] where access(file, F_OK) == 0 {
            if let finding = rights(of: file) { report(finding) }
        }
        examineContent(report)
    }

    /// Returns a finding if others than the owner may read the file, or if it belongs to another user.
    private func rights(of file: String) -> Finding? {
        var status = stat()
        guard stat(file, &status) == 0 else { return nil }
        guard access(file, R_OK | W_OK) == 0 else {
            return .fault(
                "database", "\(file) belongs to uid \(status.st_uid) and is not writable by uid \(geteuid())",
                "run doctor as the service's user; if it already does: run chown \(geteuid()) \(file)")
        }
        guard status.st_mode & 0o077 != 0 else { return nil }
        return .warning(
            "database",
            "\(file) can be read by other users of this machine (mode \(String(status.st_mode & 0o777, radix: 8)))",
            "run chmod 600 \(file)")
    }

    private func examineContent(_ report: (Finding) -> Void) {
        do {
            try Operations.withStore(settings, .readOnly) { try examineContent(of: $0, report) }
        } catch {
            report(.fault("database", Operations.reason(of: error), "fix the reported problem, or restore a backup"))
        }
    }

    private func examineContent(of store: DatabaseStore, _ report: (Finding) -> Void) throws {
        let damage = try store.integrityCheck()
        for line in damage {
            report(.fault("database", "the file is damaged: \(line)", "stop the service and restore a backup"))
        }
        if damage.isEmpty { report(.good("database", "\(path) is not damaged")) }
        let mode = try store.read { try $0.row("PRAGMA journal_mode") { try $0.text(0) } } ?? "none"
        report(
            mode == "wal"
                ? log
                : .warning(
                    "journal", "the mode is \(mode); the service changes it to wal at its start",
                    "check that no other program changes it"))
        let pending = try store.pendingMigrations(Catalog.migrations)
        report(
            .good(
                "migrations",
                pending.isEmpty ? "all are applied" : "\(pending.count) will be applied at the service's start"))
        if pending.isEmpty { try Finding.outdatedMemberships(settings, in: store).forEach(report) }
    }

    private var log: Finding {
        var status = stat()
        let bytes = stat(path + "-wal", &status) == 0 ? Int(status.st_size) : 0
        let text = "the write-ahead log has \(MachineCheck.size(bytes))"
        return bytes < DoctorLimits.logBytesHigh
            ? .good("journal", text)
            : .warning("journal", text, "find a program that keeps the file open for hours (lsof)")
    }
}

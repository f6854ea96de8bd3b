import Database
import Foundation
import Rows

/// A check of everything that a running service depends on. It changes nothing, and names no secret.
public struct Examination: Sendable {
    private let settings: Settings
    private let replicas: Int
    /// The timeouts for a stream through the public address.
    var patience = StreamPatience()

    /// Creates an examination.
    ///
    /// - Parameter replicas: The current or planned number of replicas on one PostgreSQL.
    public init(_ settings: Settings, replicas: Int) {
        (self.settings, self.replicas) = (settings, replicas)
    }

    /// Checks from this machine. Each finding is reported as soon as it is known, because some take seconds.
    public func examine(_ report: (Finding) -> Void) async {
        report(.good("settings", "all can be used"))
        report(tables)
        for finding in MachineCheck.descriptors(settings) { report(finding) }
        switch settings.database.location {
        case .memory:
            report(
                .warning(
                    "database", "it is in memory, and gone when the service stops",
                    "set \(Settings.Key.variable("database")) to a file or a PostgreSQL"))
        case .file(let path): FileCheck(settings, path: path).examine(report)
        case .server: ServerCheck(settings, replicas: replicas).examine(report)
        }
        report(MachineCheck.temporaryFolder(NSTemporaryDirectory()))
        await KeyCheck(settings).examine(report)
        if let source = settings.source { report(examine(source)) }
    }

    /// Checks through the address that clients use.
    ///
    /// - Parameter token: Opens a stream; nil skips that check.
    public func examine(publicAddress: String, token: String?, _ report: (Finding) -> Void) {
        PublicAddressCheck(
            publicAddress, token: token, heartbeatSeconds: settings.heartbeatSeconds, patience: patience
        ).examine(report)
    }

    /// Returns a finding for each invalid setting.
    public static func findings(of mistakes: [Settings.Mistake]) -> [Finding] {
        mistakes.map { mistake in
            let lines = mistake.description.split(separator: "\n").map { $0.drop { $0 == " " } }
            return .fault("settings", lines.joined(separator: "; "), "correct it; bellhop serve --help lists all")
        }
    }

    private var tables: Finding {
        let tables = settings.tables.tables
        let memberships = tables.count { !$0.memberships.isEmpty }
        return .good("tables", "\(tables.count) are declared, \(memberships) of them with memberships")
    }

    private func examine(_ source: DatabaseURL) -> Finding {
        do {
            try SourceServer.check(source, tables: settings.tables.tables, slot: settings.sourceSlot)
            return .good("source", "the log of \(source) can be read")
        } catch let problem as SourceProblem {
            return .fault("source", "\(problem)", "see Docs/source.md")
        } catch {
            return .fault(
                "source", "\(source): \(error)", "start it, or correct its address: until then nothing is read")
        }
    }
}

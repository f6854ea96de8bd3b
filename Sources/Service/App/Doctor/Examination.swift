import Database
import Foundation
import OutboundHTTP
import Rows
import Values

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
        report(.good("settings", "all are valid"))
        report(tables)
        for finding in MachineCheck.descriptors(settings) { report(finding) }
        if let finding = MachineCheck.address(settings) { report(finding) }
        switch settings.database.location {
        case .memory:
            report(
                .warning(
                    "database", "it is in memory and will be lost when the service stops",
                    "set \(Settings.variable(\.$database)) to a file or a PostgreSQL URL"))
        case .file(let path): FileCheck(settings, path: path).examine(report)
        case .server: ServerCheck(settings, replicas: replicas).examine(report)
        }
        for (setting, hosts, mode) in settings.unverifiedServers {
            report(
                .warning(
                    "TLS", "\(hosts.joined(separator: ", ")) is not verified (sslmode=\(mode))",
                    "add sslmode=verify-full&sslrootcert=/path/to/ca.pem to \(setting.variable)"))
        }
        report(MachineCheck.temporaryFolder(NSTemporaryDirectory()))
        await KeyCheck(settings).examine(report)
        if let push = settings.push { await PushCheck(push).examine(report) }
        if let webhook = settings.webhook { report(WebhookCheck(webhook: webhook).examine()) }
        if let source = settings.source { report(examine(source)) }
    }

    /// Checks through the address that clients use.
    ///
    /// - Parameters:
    ///   - known: The address of the service.
    ///   - token: The token for a test stream; nil skips the test.
    ///   - isTrusted: Whether the operator allows sending the token to the address. Otherwise it is sent only to this
    ///     machine and to `known`.
    public func examine(
        publicAddress: String, known: String?, token: String?, isTrusted: Bool, _ report: (Finding) -> Void
    ) {
        let own = [known, settings.host].compactMap { $0.flatMap(Self.host) }
        let isKnown = Self.host(of: publicAddress).map { $0.isLoopbackHost || own.contains($0) } ?? false
        if token != nil, !isTrusted, !isKnown {
            report(
                .warning(
                    "stream", "no token was sent to \(publicAddress), because it is not known to be your service",
                    "if it is your service, pass --send-token or set BELLHOP_URL to it"))
            return PublicAddressCheck(
                publicAddress, token: nil, heartbeatSeconds: settings.heartbeatSeconds, patience: patience
            ).examine { if $0.topic != "stream" { report($0) } }
        }
        PublicAddressCheck(
            publicAddress, token: token, heartbeatSeconds: settings.heartbeatSeconds, patience: patience
        ).examine(report)
    }

    /// Returns a finding if other users of this machine may read the secrets of a settings file.
    ///
    /// - Parameter secrets: The names of the secrets that the file contains.
    public static func finding(ofSettingsFile file: String, secrets: [String]) -> Finding? {
        var status = stat()
        guard !secrets.isEmpty, stat(file, &status) == 0 else { return nil }
        guard status.st_mode & 0o007 != 0 else {
            return .good("settings file", "only its owner and group can read \(file)")
        }
        return .warning(
            "settings file",
            "\(file) contains \(secrets.sorted().joined(separator: ", ")), but every user of this machine can read or write it "
                + "(mode \(String(status.st_mode & 0o777, radix: 8)))",
            "run chmod o= \(file)")
    }

    /// Returns a finding for each name that no setting has.
    public static func findings(ofUnknownNames lines: [String]) -> [Finding] {
        lines.map { .fault("settings", $0, "correct the name, or remove it") }
    }

    /// Returns a finding for each invalid setting.
    public static func findings(of mistakes: [Settings.Mistake]) -> [Finding] {
        mistakes.map { mistake in
            let lines = mistake.description.split(separator: "\n").map { $0.drop { $0 == " " } }
            return .fault(
                "settings", lines.joined(separator: "; "),
                "correct the setting; bellhop serve --help lists all settings")
        }
    }

    /// Returns the host of an address, with or without a scheme; nil if it means every address of this machine.
    private static func host(of address: String) -> String? {
        let text = address.contains("://") ? address : "http://" + address
        guard let host = URLComponents(string: text)?.host?.lowercased(), !["0.0.0.0", "::", "[::]"].contains(host)
        else { return nil }
        return host
    }

    private var tables: Finding {
        let tables = settings.tables.tables
        let memberships = tables.count { !$0.memberships.isEmpty }
        return .good("tables", "\(tables.count) declared, \(memberships) with memberships")
    }

    private func examine(_ source: DatabaseURL) -> Finding {
        do {
            try SourceServer.check(source, tables: settings.tables.tables, slot: settings.sourceSlot)
            return .good("source", "the log of \(source) can be read")
        } catch let problem as SourceProblem {
            return .fault(
                "source", "\(problem)", ServerCheck.remedy(ofRefusalBy: source, group: nil) ?? "see Docs/source.md")
        } catch {
            return .fault(
                "source", "\(source): \(error)",
                ServerCheck.remedy(ofRefusalBy: source, group: nil)
                    ?? "start the server, or correct the URL; until then no rows are read")
        }
    }
}

/// A check of the receiver of webhooks: whether it is reached from here, with a certificate that is accepted.
private struct WebhookCheck {
    let webhook: WebhookSettings

    /// Sends a GET, which no receiver takes for a webhook. Any answer shows that it is reached.
    func examine() -> Finding {
        let client = OutboundClient(allowsPrivate: webhook.allowsPrivate, timeoutSeconds: webhook.timeoutSeconds)
        let answer = client.watch(OutboundProbe(url: webhook.url)) { _ in false }
        guard answer.status == 0 else { return .good("webhooks", "\(webhook.host) answers") }
        let reason = answer.failure?.rawValue ?? "no_answer"
        return .fault(
            "webhooks", "\(webhook.host) cannot be reached: \(reason)",
            "correct \(Settings.variable(\.$webhookURL)), or let the service connect to it")
    }
}

import Foundation
import OutboundHTTP

/// The time limits after which a stream counts as held back by an intermediary.
struct StreamPatience: Sendable {
    var firstEventSeconds = DoctorLimits.firstEventSeconds
    var heartbeatSecondsLate = DoctorLimits.heartbeatSecondsLate
    /// How long a stream is followed.
    var wholeSeconds = DoctorLimits.wholeStreamSeconds
}

/// A check of the path that clients take, through all proxies. It sends requests as a browser does.
struct PublicAddressCheck {
    private let address: String
    private let token: String?
    private let heartbeatSeconds: Int
    private let patience: StreamPatience
    private let client = OutboundClient(allowsPrivate: true, timeoutSeconds: DoctorLimits.answerSeconds)

    /// Creates a check.
    ///
    /// - Parameter address: The address with its scheme; a trailing slash is ignored.
    init(_ address: String, token: String?, heartbeatSeconds: Int, patience: StreamPatience) {
        self.address = address.hasSuffix("/") ? String(address.dropLast()) : address
        (self.token, self.heartbeatSeconds, self.patience) = (token, heartbeatSeconds, patience)
    }

    func examine(_ report: (Finding) -> Void) {
        let (health, secondsAhead) = ask("/healthz")
        guard health.status == 200 else {
            let what =
                health.failure.map { "no answer (\($0.rawValue))" } ?? "/healthz answers \(health.status)"
            return report(
                .fault(
                    "public address", "\(address): \(what)",
                    "check the host name, the certificate and the proxy's route"))
        }
        report(.good("public address", "\(address) answers"))
        report(version(health.httpVersion))
        if let secondsAhead { report(ServerCheck.clock(secondsAhead: secondsAhead, of: address)) }
        examinePrivatePaths(report)
        report(compression)
        guard let token else {
            return report(
                .warning("stream", "not checked, because there is no token", "pass --token, or set jwtSecret"))
        }
        StreamCheck(address, token: token, heartbeatSeconds: heartbeatSeconds, patience: patience, client)
            .examine(report)
    }

    /// Returns the answer, and by how much this machine's clock is ahead of the clock that dated it.
    private func ask(_ path: String, _ headers: [(name: String, value: String)] = []) -> (ObservedAnswer, Double?) {
        let before = Date()
        let answer = client.watch(OutboundProbe(url: address + path, headers: headers)) { _ in true }
        guard let text = answer.headers["date"], let date = Self.dates.date(from: text) else { return (answer, nil) }
        // A date has whole seconds, so half a second is added.
        let middle = before.addingTimeInterval(Date().timeIntervalSince(before) / 2)
        return (answer, middle.timeIntervalSince(date) - 0.5)
    }

    /// The format of RFC 9110 §5.6.7.
    private static let dates = {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return format
    }()

    private func version(_ version: String) -> Finding {
        version.hasPrefix("1")
            ? .warning(
                "HTTP version",
                "HTTP/\(version): browsers open at most six connections, so the seventh tab hangs",
                "enable HTTP/2 with TLS at the proxy")
            : .good("HTTP version", "HTTP/\(version)")
    }

    private func examinePrivatePaths(_ report: (Finding) -> Void) {
        var open: [String] = []
        for path in ["/metrics", "/readyz"] where ask(path).0.status == 200 { open.append(path) }
        report(
            open.isEmpty
                ? .good("private paths", "/metrics and /readyz cannot be reached from here")
                : .warning(
                    "private paths", "\(open.joined(separator: " and ")) can be reached from here",
                    "block them at the proxy, unless this address is internal"))
    }

    /// Proxies that compress weaken the tags of answers or mark them. The service recognizes the usual marks.
    private var compression: Finding {
        let coding = ("Accept-Encoding", "gzip, br")
        let (answer, _) = ask("/v1/config", [coding])
        let how = answer.headers["content-encoding"].map { ", compressed by \($0)" } ?? ""
        guard let tag = answer.headers["etag"] else {
            return .warning(
                "entity tags", "they do not arrive\(how), so polls transfer everything, and If-Match cannot be used",
                "let ETag pass at the proxy")
        }
        guard ask("/v1/config", [coding, ("If-None-Match", tag)]).0.status == 304 else {
            return .warning(
                "entity tags", "they arrive changed (\(tag))\(how), so polls transfer everything, and If-Match fails",
                "do not compress application/json at the proxy")
        }
        return .good("entity tags", "the service recognizes them\(how)")
    }
}

import Foundation
import OutboundHTTP

/// The time limits after which a stream counts as held back by an intermediary.
struct StreamPatience: Sendable {
    var firstEventSeconds = DoctorLimits.firstEventSeconds
    var heartbeatSecondsLate = DoctorLimits.heartbeatSecondsLate
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
        examineFences(report)
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

    private func examineFences(_ report: (Finding) -> Void) {
        var open: [String] = []
        for path in ["/metrics", "/readyz"] where ask(path).0.status == 200 { open.append(path) }
        report(
            open.isEmpty
                ? .good("fences", "/metrics and /readyz cannot be reached from here")
                : .warning(
                    "fences", "\(open.joined(separator: " and ")) can be reached from here",
                    "block them at the proxy, unless this address is internal"))
    }

    /// A proxy that compresses answers weakens or removes their entity tags, and `If-Match` refuses those.
    private var compression: Finding {
        let (answer, _) = ask("/v1/config", [("Accept-Encoding", "gzip, br")])
        let tag = answer.headers["etag"] ?? ""
        guard tag.isEmpty || tag.hasPrefix("W/") else {
            return .good("entity tags", "they arrive unchanged")
        }
        let how = answer.headers["content-encoding"].map { ", compressed by \($0)" } ?? ""
        return .warning(
            "entity tags",
            "they arrive \(tag.isEmpty ? "not at all" : "weakened")\(how), so requests with If-Match fail",
            "do not compress application/json at the proxy")
    }
}

/// A check whether a stream's bytes arrive through the public address when they are sent.
private struct StreamCheck {
    private let address: String
    private let token: String
    private let heartbeatSeconds: Int
    private let patience: StreamPatience
    private let client: OutboundClient

    init(
        _ address: String, token: String, heartbeatSeconds: Int, patience: StreamPatience, _ client: OutboundClient
    ) {
        (self.address, self.token, self.heartbeatSeconds) = (address, token, heartbeatSeconds)
        (self.patience, self.client) = (patience, client)
    }

    private struct Observation {
        var bytes: [UInt8] = []
        var firstAt: Duration?
        var readyAt: Duration?
        var nextAt: Duration?
    }

    func examine(_ report: (Finding) -> Void) {
        let begun = ContinuousClock.now
        var observation = Observation()
        let mark = Array("event: stream:ready".utf8)
        let heartbeat = Duration.seconds(Double(heartbeatSeconds) + patience.heartbeatSecondsLate)
        let answer = client.watch(
            OutboundProbe(
                url: address + "/v1/stream",
                headers: [
                    ("Authorization", "Bearer \(token)"), ("Accept", "text/event-stream"),
                    ("Accept-Encoding", "gzip, br"),
                ]),
            timeoutSeconds: Int(patience.firstEventSeconds + patience.heartbeatSecondsLate) + heartbeatSeconds + 60,
            shouldStop: {
                let now = ContinuousClock.now - begun
                guard let ready = observation.readyAt else { return now > .seconds(patience.firstEventSeconds) }
                return now > ready + heartbeat
            },
            receive: { bytes in
                let now = ContinuousClock.now - begun
                observation.firstAt = observation.firstAt ?? now
                // After the beginning comes a heartbeat, or an event of this user.
                if let ready = observation.readyAt, now > ready + .milliseconds(500) { observation.nextAt = now }
                guard observation.readyAt == nil else { return observation.nextAt == nil }
                observation.bytes += bytes
                if observation.bytes.firstRange(of: mark) != nil { observation.readyAt = now }
                return observation.bytes.count <= DoctorLimits.streamBytesMax
            })
        for finding in findings(answer, observation) { report(finding) }
    }

    private func findings(_ answer: ObservedAnswer, _ observation: Observation) -> [Finding] {
        if answer.status == 401 || answer.status == 403 {
            return [
                .warning("stream", "the token was rejected with \(answer.status)", "pass a valid token with --token")
            ]
        }
        if answer.status > 0, answer.status != 200 {
            return [.fault("stream", "/v1/stream answers \(answer.status)", "check the proxy's route and /readyz")]
        }
        if let encoding = answer.headers["content-encoding"] {
            return [
                .fault(
                    "stream", "a proxy compresses it (\(encoding)), which delays events",
                    "do not compress text/event-stream at the proxy")
            ]
        }
        guard let ready = observation.readyAt else {
            let what = answer.status == 200 ? "the response head arrives, but no event" : "nothing arrives"
            return [
                .fault(
                    "stream",
                    "\(what) within \(Int(patience.firstEventSeconds)) s: a proxy buffers the stream",
                    "turn off buffering for text/event-stream (nginx: proxy_buffering off, or honor X-Accel-Buffering)")
            ]
        }
        let first = Finding.good(
            "stream", "the first event arrives after \(MachineCheck.milliseconds(ready / .seconds(1)))")
        guard let next = observation.nextAt else {
            return [
                first,
                .fault(
                    "stream",
                    "no heartbeat follows within \(heartbeatSeconds) s: a proxy buffers or closes the stream",
                    "turn off buffering for text/event-stream, and set the proxy's timeout above heartbeatSeconds"),
            ]
        }
        let seconds = Int((next - ready) / .seconds(1))
        return [first, .good("stream", "the next event or heartbeat arrives after \(seconds) s")]
    }
}

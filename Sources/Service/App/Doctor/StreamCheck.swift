import Foundation
import OutboundHTTP

/// A check whether a stream's bytes arrive through the public address when they are sent, and whether the stream stays
/// open.
struct StreamCheck {
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
        /// All bytes up to the first event, then the last ones.
        var bytes: [UInt8] = []
        var count = 0
        var readyAt: Duration?
        /// When the first bytes after the beginning arrived: a heartbeat, or an event of this user.
        var nextAt: Duration?
        var lastAt = Duration.zero
        /// Why the check ended the stream; nil if the service or a proxy did.
        var end: End?

        enum End { case noEvent, silence, enough }

        mutating func take(_ piece: UnsafeRawBufferPointer, at now: Duration) {
            count += piece.count
            bytes += piece
            lastAt = now
            if let ready = readyAt {
                bytes = Array(bytes.suffix(DoctorLimits.streamTailBytes))
                if nextAt == nil, now > ready + .milliseconds(500) { nextAt = now }
            } else if contains("event: stream:ready") {
                readyAt = now
            }
        }

        func contains(_ mark: String) -> Bool { bytes.firstRange(of: Array(mark.utf8)) != nil }
    }

    func examine(_ report: (Finding) -> Void) {
        report(
            .note(
                "stream",
                "waits \(Int(patience.wholeSeconds)) s, because some proxies limit a whole response to 15, 30 or 60 s"))
        let begun = ContinuousClock.now
        var observation = Observation()
        let silence = Duration.seconds(Double(heartbeatSeconds) + patience.heartbeatSecondsLate)
        let answer = client.watch(
            OutboundProbe(
                url: address + "/v1/stream",
                headers: [
                    ("Authorization", "Bearer \(token)"), ("Accept", "text/event-stream"),
                    ("Accept-Encoding", "gzip, br"),
                ]),
            timeoutSeconds: Int(patience.firstEventSeconds + patience.wholeSeconds + patience.heartbeatSecondsLate)
                + heartbeatSeconds + 60,
            shouldStop: {
                let now = ContinuousClock.now - begun
                // A compressed event cannot be read, but its bytes can be counted.
                if observation.readyAt == nil, observation.count >= DoctorLimits.compressedBytesMin {
                    observation.readyAt = observation.lastAt
                }
                if observation.readyAt == nil {
                    if now > .seconds(patience.firstEventSeconds) { observation.end = .noEvent }
                } else if now > observation.lastAt + silence {
                    observation.end = .silence
                } else if observation.nextAt != nil, now > .seconds(patience.wholeSeconds) {
                    observation.end = .enough
                }
                return observation.end != nil
            },
            receive: { bytes in
                observation.take(bytes, at: ContinuousClock.now - begun)
                return observation.readyAt != nil || observation.count <= DoctorLimits.streamBytesMax
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
        let coding = answer.headers["content-encoding"]
        guard let ready = observation.readyAt else { return [nothing(answer, coding)] }
        let first = Finding.good(
            "stream", "the first event arrives after \(MachineCheck.milliseconds(ready / .seconds(1)))")
        let compressed = coding.map { coding in
            Finding.warning(
                "stream", "a proxy compresses it (\(coding)); events pass, but each waits for the proxy to flush it",
                "do not compress text/event-stream at the proxy")
        }
        return [first] + (compressed.map { [$0] } ?? []) + rest(of: observation, ready)
    }

    private func nothing(_ answer: ObservedAnswer, _ coding: String?) -> Finding {
        if let coding {
            return .fault(
                "stream", "a proxy compresses it (\(coding)) and holds events",
                "do not compress text/event-stream at the proxy")
        }
        let what = answer.status == 200 ? "the response head arrives, but no event" : "nothing arrives"
        return .fault(
            "stream", "\(what) within \(Int(patience.firstEventSeconds)) s: a proxy buffers the stream",
            "turn off buffering for text/event-stream (nginx: proxy_buffering off, or honor X-Accel-Buffering)")
    }

    /// Returns the findings after the first event.
    private func rest(of observation: Observation, _ ready: Duration) -> [Finding] {
        let open = Int(observation.lastAt / .seconds(1))
        if observation.contains("event: stream:closing") {
            return [
                .warning(
                    "stream", "the service ended it after \(open) s, so no longer limit of a proxy was found",
                    "pass a token with --token that is valid for at least \(Int(patience.wholeSeconds)) s")
            ]
        }
        if observation.end == nil {
            return [
                .fault(
                    "stream",
                    "it is cut after about \(open) s although bytes arrive: a proxy limits the whole response",
                    "remove the limit of /v1/stream at the proxy (see \"What stands in front\" in Docs/operations.md)")
            ]
        }
        guard let next = observation.nextAt else {
            return [
                .fault(
                    "stream", "no heartbeat follows within \(heartbeatSeconds) s: a proxy buffers or closes the stream",
                    "turn off buffering for text/event-stream, and set the proxy's timeout above heartbeatSeconds")
            ]
        }
        let seconds = Int((next - ready) / .seconds(1))
        let found = [Finding.good("stream", "the next event or heartbeat arrives after \(seconds) s")]
        guard observation.end == .enough else {
            return found + [
                .fault(
                    "stream", "after \(open) s nothing more arrives: a proxy holds the stream without closing it",
                    "look for limits of a whole response at the proxy")
            ]
        }
        return found + [.good("stream", "it is still open after \(Int(patience.wholeSeconds)) s")]
    }
}

import CMicroHTTPD
import Glibc

extension Reactor {
    /// Connections that one turn checks. Checking ten thousand would delay the others by some hundred microseconds.
    private static let checksPerTurnMax = 2048

    /// Checks all connections about once a second, and ends the ones that have been in one phase for too long.
    /// libmicrohttpd's own timeout restarts with each byte.
    func disconnectSlowSenders(_ now: UInt64) {
        guard now >= nextCheckAt else { return }
        let isNearlyFull = connections.count * 4 >= configuration.connectionsMaxOfReactor * 3
        let end = min(nextCheckIndex + Self.checksPerTurnMax, connections.count)
        // libmicrohttpd closes a cut-off connection later, so the list does not change meanwhile.
        for index in min(nextCheckIndex, end)..<end {
            let connection = connections[index]
            let (phase, since) = connection.look(now)
            guard let seconds = patience(for: connection, in: phase, isNearlyFull: isNearlyFull) else { continue }
            if now >= since + UInt64(seconds) * 1_000_000_000 { disconnect(connection, in: phase, now) }
        }
        nextCheckIndex = end
        guard end == connections.count else { return }
        nextCheckIndex = 0
        lingering?.removeOverdue(now)
        nextCheckAt = now + (isNearlyFull ? 250_000_000 : 1_000_000_000)
    }

    /// Returns how long a connection may stay in a phase; nil for no limit.
    private func patience(for connection: HTTPConnection, in phase: HTTPConnection.Phase, isNearlyFull: Bool) -> Int? {
        func seconds(for bytes: Int) -> Int { configuration.senderSeconds + bytes / configuration.senderBytesPerSecond }
        switch phase {
        case .head where isNearlyFull && connection.isNew:
            return min(configuration.crowdedSenderSeconds, configuration.senderSeconds)
        case .head: return configuration.senderSeconds
        case .body: return seconds(for: connection.request?.bodyBytesExpected ?? 0)
        case .sending:
            let request = connection.request
            return seconds(for: request?.pieces?.byteCount ?? request?.answeredBytes ?? 0)
        case .nextRequest: return configuration.connectionTimeoutSeconds
        case .answer: return nil
        }
    }

    /// Ends a connection that libmicrohttpd reads from or sends to.
    private func disconnect(_ connection: HTTPConnection, in phase: HTTPConnection.Phase, _ now: UInt64) {
        let descriptor = cmhd_connection_descriptor(connection.handle)
        guard descriptor >= 0 else { return }
        // A client that has sent nothing is closed silently. Clients open connections in advance, and would take a
        // message on such a connection for the answer to their next request.
        if phase == .body || phase == .head && cmhd_has_received(descriptor) != 0 {
            let request = connection.request ?? .unread(receivedAt: now)
            answerIncomplete(request, on: descriptor, with: .tooSlow)
        }
        // libmicrohttpd finds the end of the connection, and closes it.
        shutdown(descriptor, Int32(SHUT_RDWR))
    }
}

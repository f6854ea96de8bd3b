import CMicroHTTPD
import Glibc

extension Reactor {
    /// Answers a head whose Content-Length the library refuses, before the library does: it would write its answer twice.
    ///
    /// The library does not say which connection it is working on. So each one is answered that waits for the rest of a
    /// head and has such a length in it already; it would be refused when the rest is there.
    func refuseUnusableLength() {
        // As a rule it is the one whose request began last, since a head comes in one piece.
        if let lastOpened, refuseUnusableLength(of: lastOpened) { return }
        for connection in connections where refuseUnusableLength(of: connection) {}
    }

    private func refuseUnusableLength(of connection: Connection) -> Bool {
        guard let request = connection.request, connection.phase == .head,
            let problem = BodyFraming.refusal(ofLengthIn: connection.handle)
        else { return false }
        let descriptor = cmhd_connection_descriptor(connection.handle)
        guard descriptor >= 0 else { return false }
        request.isLeftUnread = true
        answerPast(request, on: descriptor, with: problem)
        // What the library writes now goes nowhere, and it closes the connection.
        shutdown(descriptor, Int32(SHUT_WR))
        return true
    }
}

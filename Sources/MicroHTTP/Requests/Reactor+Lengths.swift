import CMicroHTTPD
import Glibc

extension Reactor {
    /// Answers a head whose Content-Length the library refuses, before the library does. The library would write its
    /// answer twice.
    ///
    /// The library does not report the connection. So every connection with an incomplete head that already contains
    /// such a length is answered; the library would refuse it once the head is complete.
    func refuseUnusableLength() {
        // Usually it is the connection whose request began last, because most heads arrive in one piece.
        if let lastOpened, refuseUnusableLength(of: lastOpened) { return }
        for connection in connections where refuseUnusableLength(of: connection) {}
    }

    private func refuseUnusableLength(of connection: HTTPConnection) -> Bool {
        guard let request = connection.request, connection.phase == .head,
            let problem = BodyFraming.refusal(ofLengthIn: connection.handle)
        else { return false }
        let descriptor = cmhd_connection_descriptor(connection.handle)
        guard descriptor >= 0 else { return false }
        request.isBodyUnread = true
        answerIncomplete(request, on: descriptor, with: problem)
        // Discards the library's own answer. The library then closes the connection.
        shutdown(descriptor, Int32(SHUT_WR))
        return true
    }
}

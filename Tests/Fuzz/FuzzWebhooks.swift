import Glibc
import Synchronization

@testable import OutboundHTTP

/// Sends a webhook to a receiver that answers with these bytes and closes the connection. If the first byte is `m`, the
/// client of the push services sends it, which also keeps the body. Every answer must have an outcome.
let readWebhookAnswer: FuzzTarget = { input in
    guard let first = input.first else { return }
    receiver.answer = Array(input.dropFirst())
    let post = OutboundPost(url: receiver.url, headers: [], body: Array("{}".utf8))
    guard first == UInt8(ascii: "m") else { return check(clients.one.post(post), []) }
    let ended = DispatchedAnswer()
    clients.many.submit(post) { ended.set($0, $1) }
    let (outcome, body) = ended.wait()
    check(outcome, body)
}

private func check(_ outcome: OutboundOutcome, _ body: [UInt8]) {
    require(body.count <= OutboundLimits.bodyBytesMax, "a body of \(body.count) bytes")
    switch outcome {
    case .answered(let status, let seconds):
        require((200..<1000).contains(status), "the status \(status)")
        require(seconds ?? 1 > 0, "a wait of \(seconds ?? 0) s")
    // The receiver is there, its address is allowed, and it closes each connection.
    case .failed(let failure): require(failure == .broken || failure == .timeout, "the outcome \(failure)")
    }
}

private let receiver = FuzzedReceiver()

private let clients: (one: OutboundClient, many: OutboundMultiplexer) = {
    let many = OutboundMultiplexer("fuzz", allowsPrivate: true, timeoutSeconds: 5)
    many.start()
    return (OutboundClient(allowsPrivate: true, timeoutSeconds: 5), many)
}()

/// The answer to a request, handed from the client's thread to the fuzzer's.
private final class DispatchedAnswer: Sendable {
    private let answer = Mutex<(OutboundOutcome, [UInt8])?>(nil)

    func set(_ outcome: OutboundOutcome, _ body: [UInt8]) { answer.withLock { $0 = (outcome, body) } }

    func wait() -> (OutboundOutcome, [UInt8]) {
        while true {
            if let given = answer.withLock({ $0 }) { return given }
            sched_yield()
        }
    }
}

/// Answers each connection with the present bytes.
private final class FuzzedReceiver: Sendable {
    private let present = Mutex<[UInt8]>([])
    let url: String

    var answer: [UInt8] {
        get { present.withLock { $0 } }
        set { present.withLock { $0 = newValue } }
    }

    init() {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        require(isListening, "the receiver cannot listen: \(errno)")
        url = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))/"
        var thread = pthread_t()
        let context = Unmanaged.passRetained(Serving(listener: listener, receiver: self)).toOpaque()
        pthread_create(
            &thread, nil,
            { context in
                let serving = Unmanaged<Serving>.fromOpaque(context!).takeUnretainedValue()
                while true { serving.receiver.serve(accept(serving.listener, nil, nil)) }
            }, context)
    }

    private final class Serving {
        let listener: Int32
        let receiver: FuzzedReceiver
        init(listener: Int32, receiver: FuzzedReceiver) { (self.listener, self.receiver) = (listener, receiver) }
    }

    private func serve(_ connection: Int32) {
        guard connection >= 0 else { return }
        defer { close(connection) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        // The request fits into one read.
        guard recv(connection, &bytes, bytes.count, 0) > 0 else { return }
        let answer = answer
        _ = answer.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }
}

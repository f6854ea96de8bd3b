import CMicroHTTPD
import Glibc

/// A test at start that a stream's socket survives when libmicrohttpd closes its own descriptor of it.
///
/// It survives with `MHD_USE_TURBO`, which makes libmicrohttpd skip `shutdown()`. A version with another behaviour
/// would end every stream right after its head. Then the server does not start at all.
enum DetachTest {
    static func run() throws(ServerError) {
        let (descriptors, port) = try SocketAddress.listen(host: "127.0.0.1", port: 0, count: 1, backlog: 1)
        let trial = Trial()
        let context = Unmanaged.passUnretained(trial).toOpaque()
        var options = [
            MHD_OptionItem(.LISTEN_SOCKET, Int(descriptors[0])),
            // C takes the function's address as an integer; the type before the cast is the type that it calls.
            MHD_OptionItem(
                .NOTIFY_COMPLETED, unsafeBitCast(trialCompleted as MHD_RequestCompletedCallback, to: Int.self), context),
            MHD_OptionItem(.END, 0),
        ]
        let flags = MHD_USE_EPOLL.rawValue | MHD_USE_TURBO.rawValue
        guard let daemon = cmhd_start(flags, trialHandler, context, &options) else {
            close(descriptors[0])
            throw ServerError(description: "libmicrohttpd cannot start")
        }
        let client = connectTo(port)
        defer {
            close(client)
            if trial.descriptor >= 0 { close(trial.descriptor) }
        }
        let request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        _ = request.withCString { send(client, $0, strlen($0), Int32(MSG_NOSIGNAL)) }
        let deadline = cmhd_monotonic_nanoseconds() + 5_000_000_000
        while !trial.isCompleted, cmhd_monotonic_nanoseconds() < deadline { MHD_run_wait(daemon, 20) }
        // A completed connection is not yet closed. Stopping now would shut down the socket that is about to be
        // released.
        while cmhd_connection_count(daemon) > 0, cmhd_monotonic_nanoseconds() < deadline { MHD_run_wait(daemon, 1) }
        MHD_stop_daemon(daemon)
        guard trial.descriptor >= 0, send(trial.descriptor, "!", 1, Int32(MSG_NOSIGNAL)) == 1,
            receivesMark(client)
        else {
            throw ServerError(
                description:
                    "this build of libmicrohttpd closes a connection when it hands over its socket, so streams cannot work"
            )
        }
    }

    private static func connectTo(_ port: Int) -> Int32 {
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var timeout = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        withUnsafePointer(to: &address) { pointer in
            _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return client
    }

    /// Whether the byte that was sent after the response's end arrives.
    private static func receivesMark(_ client: Int32) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var last: UInt8 = 0
        while last != UInt8(ascii: "!") {
            let count = recv(client, &buffer, buffer.count, 0)
            guard count > 0 else { return false }
            last = buffer[count - 1]
        }
        return true
    }
}

private final class Trial {
    var source: Int32 = -1
    var descriptor: Int32 = -1
    var isCompleted = false
    var isSecondCall = false
}

private func trialHandler(
    _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _: UnsafePointer<CChar>?,
    _: UnsafePointer<CChar>?, _: UnsafePointer<CChar>?, _: UnsafePointer<CChar>?, _: UnsafeMutablePointer<Int>?,
    _: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let context, let connection else { return .NO }
    let trial = Unmanaged<Trial>.fromOpaque(context).takeUnretainedValue()
    guard trial.isSecondCall else {
        trial.isSecondCall = true
        return .YES
    }
    trial.source = cmhd_connection_descriptor(connection)
    guard let response = cmhd_stream_response(trialReader, context, nil) else { return .NO }
    defer { MHD_destroy_response(response) }
    return MHD_queue_response(connection, 200, response)
}

private func trialReader(_ context: UnsafeMutableRawPointer?, _: UInt64, _: UnsafeMutablePointer<CChar>?, _: Int) -> Int
{
    if let context {
        let trial = Unmanaged<Trial>.fromOpaque(context).takeUnretainedValue()
        trial.descriptor = cmhd_duplicate(trial.source)
    }
    return cmhd_end_of_stream()
}

private func trialCompleted(
    _ context: UnsafeMutableRawPointer?, _: OpaquePointer?, _: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _: MHD_RequestTerminationCode
) {
    if let context { Unmanaged<Trial>.fromOpaque(context).takeUnretainedValue().isCompleted = true }
}

import ArgumentParser
import Foundation

/// A probe of the service's health: one `GET /healthz` over a plain socket, because creating a URLSession would take
/// longer than the request.
struct HealthProbe {
    /// Docker's own limit is 30 seconds; a service that needs longer than this for an instant answer is unhealthy.
    private static let timeout = Duration.seconds(3)

    private let host: String
    private let port: Int
    private let deadline = ContinuousClock.now + timeout

    /// - Parameter host: the address on which the service listens; for the any-interface address, loopback is used.
    init(host: String, port: Int) {
        self.host = ["0.0.0.0": "127.0.0.1", "::": "::1"][host] ?? host
        self.port = port
    }

    private var address: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// - Throws: the exit code, after printing in one line why the service is unhealthy.
    func run() throws(ExitCode) {
        let descriptor = try connected()
        defer { close(descriptor) }
        let request = "GET /healthz HTTP/1.1\r\nHost: \(address)\r\nConnection: close\r\n\r\n"
        guard send(descriptor, request, request.utf8.count, Int32(MSG_NOSIGNAL)) == request.utf8.count else {
            throw systemProblem(errno)
        }
        let head = try receive("HTTP/1.1 200".utf8.count, from: descriptor)
        guard head.hasPrefix("HTTP/1."), let status = Int(head.dropFirst(9).prefix(3)) else {
            throw Terminal.failure("the response of \(address) is not HTTP")
        }
        guard status == 200 else { throw Terminal.failure("\(address)/healthz answered \(status)") }
    }

    private func connected() throws(ExitCode) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(host, "\(port)", &hints, &list)
        guard result == 0, let first = list else {
            throw Terminal.failure("\(host) is not a valid address: \(String(cString: gai_strerror(result)))")
        }
        defer { freeaddrinfo(first) }
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(first.pointee.ai_family, type, 0)
        guard descriptor >= 0 else { throw systemProblem(errno) }
        do throws(ExitCode) {
            if connect(descriptor, first.pointee.ai_addr, first.pointee.ai_addrlen) != 0 {
                guard errno == EINPROGRESS else { throw systemProblem(errno) }
                try wait(for: POLLOUT, on: descriptor)
                var (reason, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
                getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &reason, &length)
                guard reason == 0 else { throw systemProblem(reason) }
            }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Returns the first bytes of the answer, or fewer if it ends earlier.
    private func receive(_ count: Int, from descriptor: Int32) throws(ExitCode) -> String {
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1024)
        while received.count < count {
            try wait(for: POLLIN, on: descriptor)
            let length = recv(descriptor, &buffer, buffer.count, 0)
            guard length >= 0 else { throw systemProblem(errno) }
            guard length > 0 else { break }
            received += buffer[..<length]
        }
        return String(decoding: received, as: UTF8.self)
    }

    private func wait(for events: Int32, on descriptor: Int32) throws(ExitCode) {
        var awaited = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        let left = (deadline - .now) / .milliseconds(1)
        guard poll(&awaited, 1, Int32(max(0, left))) > 0 else {
            throw Terminal.failure("\(address) did not answer within \(Self.timeout.components.seconds) seconds")
        }
    }

    private func systemProblem(_ reason: Int32) -> ExitCode {
        Terminal.failure("\(address) cannot be reached: \(String(cString: strerror(reason)))")
    }
}

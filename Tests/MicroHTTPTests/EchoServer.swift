import Foundation
import Synchronization

@testable import MicroHTTP

/// A server whose routes each demonstrate one feature.
///
/// `@unchecked Sendable`: `deferred` is only accessed while `condition` is locked.
final class EchoServer: @unchecked Sendable {
    private(set) var streams: StreamShards<Announcer>!
    private(set) var server: Server!
    private let workers = WorkerPool(name: "echo", threads: 4, queueMax: 1000)
    /// Guards `deferred`.
    private let condition = NSCondition()
    private var deferred: [Responder] = []

    /// The bytes that bodies currently reserve.
    let reserved = Reserved()

    final class Reserved: Sendable {
        private let bytes = Atomic<Int>(0)
        var now: Int { bytes.load(ordering: .sequentiallyConsistent) }
        fileprivate func add(_ more: Int) { bytes.wrappingAdd(more, ordering: .sequentiallyConsistent) }
    }

    private final class Reservation: BodyReservation {
        private let bytes: Atomic<Int>
        private let reserved: Reserved

        init(_ bytes: Int, in reserved: Reserved) {
            self.bytes = Atomic(bytes)
            self.reserved = reserved
            reserved.add(bytes)
        }

        deinit { reserved.add(-bytes.load(ordering: .sequentiallyConsistent)) }

        func grow(to wanted: Int) -> Bool {
            let before = bytes.exchange(wanted, ordering: .sequentiallyConsistent)
            reserved.add(wanted - before)
            return true
        }
    }

    /// A program that greets each stream, sends each message to all streams, and says goodbye.
    final class Announcer: StreamProgram {
        private let shard: StreamShard<Announcer>
        private var streams: Set<StreamHandle> = []

        init(_ shard: StreamShard<Announcer>) {
            self.shard = shard
        }

        func streamOpened(_ stream: StreamHandle, context _: any Sendable) {
            streams.insert(stream)
            shard.send(SharedBytes(Array("opened\n".utf8)), to: stream)
        }

        func received(_ message: String) {
            let bytes = SharedBytes(Array(message.utf8))
            for stream in streams { shard.send(bytes, to: stream) }
        }

        func streamClosed(_ stream: StreamHandle, reason _: StreamCloseReason) { streams.remove(stream) }
        func streamOverflowed(_: StreamHandle) -> OverflowAction { .close }
        func ticked(_: UInt64) {}

        func shardWillStop() {
            for stream in streams {
                shard.send(SharedBytes(Array("bye\n".utf8)), to: stream)
                shard.close(stream)
            }
        }
    }

    init(
        host: String = "127.0.0.1", port: Int = 0, answerSeconds: Int = 60,
        _ configure: (inout ServerConfiguration) -> Void = { _ in }
    ) throws {
        var configuration = ServerConfiguration()
        configuration.host = host
        configuration.port = port
        configuration.answerSeconds = answerSeconds
        configure(&configuration)
        configuration.decorate = { $1.headers.append(("X-Decorated", "yes")) }
        configuration.problem = { problem in
            switch problem {
            case .notFound: Response(status: 404)
            case .methodNotAllowed: Response(status: 405)
            case .bodyTooLarge: Response(status: 413)
            case .malformed: Response(status: 400)
            case .tooSlow: Response(status: 408)
            case .tooManyStreams, .noRoomForBody, .unanswered: Response(status: 503)
            }
        }
        streams = try StreamShards(configuration)
        server = try Server(configuration: configuration, routes: routes, streams: streams)
        streams.start { Announcer($0) }
        try server.start()
    }

    deinit {
        let (server, workers) = (server, workers)
        Thread {
            // The deadline is zero, because a clock that stands still would never reach another one.
            server?.shutdown(deadlineSeconds: 0)
            workers.shutdown()
        }.start()
    }

    var port: Int { server.port }

    func waitUntilDeferred(_ count: Int) {
        condition.withLock { while deferred.count < count { condition.wait() } }
    }

    func answerDeferred() {
        // A retained responder would retain its request.
        let responders = condition.withLock {
            defer { deferred = [] }
            return deferred
        }
        for responder in responders { responder.complete(Self.text("released")) }
    }

    private static func text(_ text: String) -> Response { Response(status: 200, body: .bytes(Array(text.utf8))) }

    /// A body whose pieces have the numbers from 1 on, `size` times each.
    private var pieces: Route {
        Route(.get, "/pieces/{count}/{size}") { [workers] request in
            let (count, size) = (Int(request.parameter(0)) ?? 0, Int(request.parameter(1)) ?? 0)
            let isFailing = request.queryItems.contains { $0.name == "fails" }
            let isSilent = request.queryItems.contains { $0.name == "isSilent" }
            let made = Atomic(0)
            let body = PieceBody { deliver in
                _ = workers.submit {
                    let number = made.add(1, ordering: .sequentiallyConsistent).newValue
                    if number <= count {
                        deliver(.bytes(Array(String(repeating: "\(number) ", count: size).utf8)))
                    } else if !isSilent {
                        deliver(isFailing ? .failed : .end)
                    }
                }
            }
            return .response(Response(status: 200, body: .pieces(body)))
        }
    }

    private var routes: [Route] {
        [
            pieces,
            Route(.get, "/hello") { request in
                .response(Self.text("hello \(request.queryItems.first?.value ?? "")"))
            },
            Route(.get, "/hello/{name}") { .response(Self.text("hello \($0.parameter(0))")) },
            Route(.post, "/echo", bodyBytesMax: 100) { .response(Response(status: 200, body: .bytes($0.body))) },
            Route(
                .post, "/counted", bodyBytesMax: 50_000,
                admit: { [reserved] _, bytes in
                    .admitted(Reservation(bytes, in: reserved))
                }
            ) { .response(Self.text("\($0.body.count)")) },
            Route(
                .post, "/counted-deferred", bodyBytesMax: 50_000,
                admit: { [reserved] _, bytes in
                    .admitted(Reservation(bytes, in: reserved))
                }
            ) { [unowned self] _ in
                .deferred { responder in
                    self.condition.withLock {
                        self.deferred.append(responder)
                        self.condition.broadcast()
                    }
                }
            },
            Route(.get, "/later") { [workers] request in
                .deferred { responder in
                    _ = workers.submit {
                        responder.complete(Self.text("later \(request.queryItems.first?.value ?? "")"))
                    }
                }
            },
            Route(.post, "/again", bodyBytesMax: 100) { [workers] request in
                guard request.context == nil else {
                    let name = request.header("x-NAME") ?? ""
                    return .response(Self.text("second \(String(decoding: request.body, as: UTF8.self)) \(name)"))
                }
                request.context = NSObject()
                return .again { resume in _ = workers.submit(resume) }
            },
            Route(.get, "/deferred") { [unowned self] _ in
                .deferred { responder in
                    self.condition.withLock {
                        self.deferred.append(responder)
                        self.condition.broadcast()
                    }
                }
            },
            Route(.get, "/fields") { request in
                var response = Response(status: 204)
                for (name, value) in request.queryItems { response.headers.append((name, value ?? "")) }
                return .response(response)
            },
            Route(.get, "/stream") { _ in .stream(StreamOpening(headers: [], context: 0)) },
        ]
    }
}

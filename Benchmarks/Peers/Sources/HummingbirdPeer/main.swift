import Hummingbird
import Logging
import NIOPosix

/// Usage: HummingbirdPeer PORT THREADS [DATABASE SECRET]
///
/// `GET /stream` is an SSE stream; `POST /publish?count=N` sends the body N times to all streams. With a database it
/// also serves `GET /v1/badges` like Bellhop: bearer token verified once and then cached, one point read of SQLite
/// through the C library, JSON, `ETag` and 304.
let arguments = CommandLine.arguments
guard arguments.count == 3 || arguments.count == 5, let port = Int(arguments[1]), let threads = Int(arguments[2])
else {
    fatalError("usage: HummingbirdPeer PORT THREADS [DATABASE SECRET]")
}

let router = Router(context: BasicRequestContext.self)
let streams = Streams()
router.get("/healthz") { _, _ in "ok" }
router.get("/stream") { _, _ in streams.open() }
router.post("/publish") { request, _ in
    let body = try await request.body.collect(upTo: 65_536)
    streams.publish(body, count: request.uri.queryParameters.get("count", as: Int.self) ?? 1)
    return HTTPResponse.Status.accepted
}
if arguments.count == 5 {
    let badges = try Badges(databasePath: arguments[3], secret: arguments[4])
    router.get("/v1/badges") { request, _ in try badges.respond(to: request) }
}

var logger = Logger(label: "peer")
logger.logLevel = .error
let application = Application(
    router: router,
    configuration: .init(address: .hostname("127.0.0.1", port: port), serverName: "peer", backlog: 4_096),
    eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup(numberOfThreads: threads)),
    logger: logger
)
try await application.runService()

import Dispatch
import MicroHTTP

/// Usage: TransportFanout PORT SHARDS
///
/// `GET /stream` opens a stream; `POST /publish?count=N` sends the body N times to all, posted as one batch;
/// `POST /publish?target=I` sends it to one stream.
let arguments = CommandLine.arguments
guard arguments.count == 3, let port = Int(arguments[1]), let shards = Int(arguments[2]) else {
    fatalError("usage: TransportFanout PORT SHARDS")
}
let server = try makeServer(port: port, shards: shards)
try server.start()
dispatchMain()

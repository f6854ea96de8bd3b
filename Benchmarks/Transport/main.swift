import Dispatch
import MicroHTTP

/// Usage: transport-fanout PORT SHARDS
///
/// `GET /stream` opens a stream; `POST /publish?count=N` sends the body N times to all streams, as one batch;
/// `POST /publish?target=I` sends it to one stream.
let arguments = CommandLine.arguments
guard arguments.count == 3, let port = Int(arguments[1]), let shards = Int(arguments[2]) else {
    fatalError("usage: transport-fanout PORT SHARDS")
}
let server = try startServer(port: port, shards: shards)
dispatchMain()

import CMicroHTTPD
import Foundation

/// Takes the sockets of streams from the reactors, and ends them with the server.
protocol StreamAcceptor: Sendable {
    /// A place for one more stream; nil: there is none.
    func reserve(_ opening: StreamOpening) -> StreamReservation?
    /// Ends all streams.
    func stop(deadlineSeconds: Double)
}

/// A place for one stream on one shard, given back when it is dropped without having been used.
final class StreamReservation {
    private let adopt: (Int32) -> Void
    private let release: () -> Void
    private var isUsed = false

    init(adopt: @escaping (Int32) -> Void, release: @escaping () -> Void) {
        self.adopt = adopt
        self.release = release
    }

    func use(_ descriptor: Int32) {
        isUsed = true
        adopt(descriptor)
    }

    deinit {
        if !isUsed { release() }
    }
}

/// Carries a connection from libmicrohttpd to a shard: when all of the head is sent, the socket gets a second
/// descriptor, and libmicrohttpd learns that the body is over. It closes its own descriptor, and with
/// `MHD_USE_TURBO` it does so without shutting the connection down; the stream lives on by the second.
final class StreamHandOff {
    private let descriptor: Int32
    private let reservation: StreamReservation
    private let configuration: ServerConfiguration

    init(descriptor: Int32, reservation: StreamReservation, configuration: ServerConfiguration) {
        self.descriptor = descriptor
        self.reservation = reservation
        self.configuration = configuration
    }

    func detach() {
        let own = cmhd_duplicate(descriptor)
        guard own >= 0 else { return }
        _ = cmhd_set_integer(own, Int32(IPPROTO_TCP), TCP_CORK, 0)
        _ = cmhd_set_integer(own, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        _ = cmhd_set_integer(own, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, Int32(configuration.notSentLowWaterBytes))
        _ = cmhd_set_integer(
            own, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, Int32(configuration.streamUserTimeoutSeconds * 1000))
        reservation.use(own)
    }
}

/// Called when the head is on its way: there is no body of libmicrohttpd's.
func readStream(
    _ context: UnsafeMutableRawPointer?, _: UInt64, _: UnsafeMutablePointer<CChar>?, _: Int
) -> Int {
    if let context { Unmanaged<StreamHandOff>.fromOpaque(context).takeUnretainedValue().detach() }
    return cmhd_end_of_stream()
}

func releaseStream(_ context: UnsafeMutableRawPointer?) {
    if let context { Unmanaged<StreamHandOff>.fromOpaque(context).release() }
}

import CMicroHTTPD
import Foundation

/// The receiver of stream sockets from the reactors. It ends them with the server.
protocol StreamAcceptor: Sendable {
    /// Reserves a place for one more stream, or returns nil if the server is full.
    func reserve(_ opening: StreamOpening) -> StreamHandOff?
    /// Ends all streams.
    func stop(deadlineSeconds: Double)
}

/// The transfer of a connection from libmicrohttpd to a place on a shard. The socket gets a second descriptor. Once the
/// whole head is sent, the body reader reports the end of the body to libmicrohttpd. libmicrohttpd then closes its own
/// descriptor; with `MHD_USE_TURBO` it does so without shutting down the connection. The stream continues on the second
/// descriptor.
///
/// If the transfer is released unused, the place and the descriptor are returned.
final class StreamHandOff {
    /// The second descriptor of the connection.
    private var own: Int32 = -1
    private let configuration: ServerConfiguration
    private let adopt: (Int32) -> Void
    private let releasePlace: () -> Void
    private var isUsed = false

    init(configuration: ServerConfiguration, adopt: @escaping (Int32) -> Void, releasePlace: @escaping () -> Void) {
        self.configuration = configuration
        self.adopt = adopt
        self.releasePlace = releasePlace
    }

    deinit {
        guard !isUsed else { return }
        if own >= 0 { close(own) }
        releasePlace()
    }

    /// Duplicates the descriptor. To be called before the head is sent, while another answer is still possible. Returns
    /// false if no descriptor is left.
    func duplicate(_ descriptor: Int32) -> Bool {
        own = cmhd_duplicate(descriptor)
        return own >= 0
    }

    func detach() {
        guard own >= 0, !isUsed else { return }
        _ = cmhd_set_integer(own, Int32(IPPROTO_TCP), TCP_CORK, 0)
        _ = cmhd_set_integer(own, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        _ = cmhd_set_integer(own, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, Int32(configuration.notSentLowWaterBytes))
        _ = cmhd_set_integer(
            own, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, Int32(configuration.streamUserTimeoutSeconds * 1000))
        isUsed = true
        adopt(own)
    }
}

/// Called once the head has been sent; libmicrohttpd has no body to send.
func readStream(
    _ context: UnsafeMutableRawPointer?, _: UInt64, _: UnsafeMutablePointer<CChar>?, _: Int
) -> Int {
    if let context { Unmanaged<StreamHandOff>.fromOpaque(context).takeUnretainedValue().detach() }
    return cmhd_end_of_stream()
}

func releaseStream(_ context: UnsafeMutableRawPointer?) {
    if let context { Unmanaged<StreamHandOff>.fromOpaque(context).release() }
}

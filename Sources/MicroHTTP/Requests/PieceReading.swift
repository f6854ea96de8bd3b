import CMicroHTTPD

/// The sending of a body in pieces. It belongs to a request, on the reactor's thread.
final class PieceReading {
    /// Bytes that libmicrohttpd asks for at once.
    static let blockBytes = 16 * 1024

    /// Suspends the connection until ``receive(_:)`` is called.
    private let awaitNext: () -> Void
    private let sent: (_ byteCount: Int) -> Void
    private var piece: [UInt8] = []
    private var sentCount = 0
    private var end: Int?

    init(awaitNext: @escaping () -> Void, sent: @escaping (_ byteCount: Int) -> Void) {
        (self.awaitNext, self.sent) = (awaitNext, sent)
    }

    /// The size of the present piece.
    var byteCount: Int { piece.count }

    func receive(_ next: PieceBody.Piece) {
        switch next {
        case .bytes(let bytes): (piece, sentCount) = (bytes, 0)
        case .end: end = cmhd_end_of_stream()
        case .failed: end = cmhd_end_with_error()
        }
    }

    /// Copies the next bytes. Returns their number, the end of the body, or 0 after suspending the connection.
    fileprivate func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        if let end { return end }
        let bytes = piece[sentCount...].prefix(buffer.count)
        guard !bytes.isEmpty else {
            piece = []
            sentCount = 0
            awaitNext()
            return 0
        }
        buffer.copyBytes(from: bytes)
        sentCount += bytes.count
        sent(bytes.count)
        return bytes.count
    }

    /// Returns libmicrohttpd's response, which retains this; nil if memory is short.
    func response() -> OpaquePointer? {
        let context = Unmanaged.passRetained(self).toOpaque()
        let made = cmhd_pieces_response(Self.blockBytes, readPiece, context, releasePieces)
        if made == nil { releasePieces(context) }
        return made
    }
}

private func readPiece(
    _ context: UnsafeMutableRawPointer?, _: UInt64, _ buffer: UnsafeMutablePointer<CChar>?, _ max: Int
) -> Int {
    guard let context, let buffer else { return cmhd_end_with_error() }
    return Unmanaged<PieceReading>.fromOpaque(context).takeUnretainedValue()
        .read(into: UnsafeMutableRawBufferPointer(start: buffer, count: max))
}

private func releasePieces(_ context: UnsafeMutableRawPointer?) {
    if let context { Unmanaged<PieceReading>.fromOpaque(context).release() }
}

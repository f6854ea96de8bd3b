/// A body of any length. Its next piece is made when the client has taken the one before, so one piece is in memory.
///
/// HTTP/1.1 sends it in chunks. If a piece fails, the connection ends without the last chunk, and the client knows that
/// the body is not complete.
public struct PieceBody: Sendable {
    public enum Piece: Sendable {
        /// The next bytes; empty if there are none yet.
        case bytes([UInt8])
        case end
        case failed
    }

    let next: @Sendable (_ deliver: @escaping @Sendable (Piece) -> Void) -> Void

    /// - Parameter next: Makes the next piece on another thread. It must not block, and calls `deliver` once.
    public init(_ next: @escaping @Sendable (_ deliver: @escaping @Sendable (Piece) -> Void) -> Void) {
        self.next = next
    }

    /// Returns the body with an observer of its pieces.
    public func watched(_ observe: @escaping @Sendable (Piece) -> Void) -> PieceBody {
        PieceBody { deliver in
            next { piece in
                observe(piece)
                deliver(piece)
            }
        }
    }
}

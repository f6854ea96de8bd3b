extension Reactor {
    /// Returns the response with a body in pieces; nil if memory is short. The connection is suspended while a piece is
    /// made.
    func piecesResponse(_ request: Request, _ body: PieceBody) -> OpaquePointer? {
        // The request keeps the reading until it ends, and is not read from afterwards.
        let reading = PieceReading(
            awaitNext: { [unowned self, unowned request] in
                let (suspension, inbox) = (suspend(request), inbox)
                body.next { [request] in inbox.post(.piece(request, suspension: suspension, $0)) }
            },
            sent: { [unowned request] in request.answeredBytes += $0 })
        request.pieces = reading
        return reading.response()
    }
}

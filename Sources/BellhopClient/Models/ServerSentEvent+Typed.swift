import Foundation

extension ServerSentEvent {
    /// The event with its data decoded.
    public var typed: Bellhop.StreamEvent { Bellhop.StreamEvent(self) }

    func model<Model: Decodable>() throws -> Model {
        try Bellhop.decoder.decode(Model.self, from: Data(data.utf8))
    }
}

import Foundation

extension ServerSentEvent {
    /// The event with its data read.
    public var typed: Bellhop.StreamEvent { Bellhop.StreamEvent(self) }

    func model<Model: Decodable>() throws -> Model {
        try Bellhop.decoder.decode(Model.self, from: Data(data.utf8))
    }
}

import Values

/// A track as its music catalog names it (R-CUT-D-1).
public struct DJTrack: Sendable, Hashable {
    public let trackId: ID<DJTrack>
    public let trackName: String
    public let artistName: String
    /// The address of the cover image.
    public let albumArt: String?

    public init(trackId: ID<DJTrack>, trackName: String, artistName: String, albumArt: String?) {
        self.trackId = trackId
        self.trackName = trackName
        self.artistName = artistName
        self.albumArt = albumArt
    }

    /// Reads the body of `POST /v1/shops/{id}/dj/tracks`.
    public init(reading fields: inout Fields) {
        trackId = fields.id("trackId")
        trackName = Self.name("trackName", in: &fields)
        artistName = Self.name("artistName", in: &fields)
        albumArt = fields.optionalString("albumArt", bytesMax: DJLimits.albumArtBytesMax)
        if let albumArt, !Self.isAddress(albumArt) {
            fields.reject("albumArt", "must be a URL that begins with https://")
        }
    }

    private static func name(_ name: String, in fields: inout Fields) -> String {
        let text = fields.string(name, bytesMax: DJLimits.nameBytesMax)
        if text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            fields.reject(name, "must not contain control characters")
        }
        return text
    }

    /// Whether the text is an https address without characters that must be escaped. Every guest's phone fetches it.
    private static func isAddress(_ text: String) -> Bool {
        let scheme = "https://"
        return text.hasPrefix(scheme) && text.utf8.count > scheme.utf8.count
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"<>\\^`{|}".utf8.contains($0) }
    }

    public func write(membersTo writer: inout JSONWriter) {
        writer.member("trackId", trackId)
        writer.member("trackName", trackName)
        writer.member("artistName", artistName)
        writer.member("albumArt", albumArt)
    }
}

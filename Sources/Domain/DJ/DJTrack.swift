import Values

/// A track as its music catalog names it (R-CUT-D-1).
public struct DJTrack: Sendable, Hashable {
    public var trackId: ID<DJTrack>
    public var trackName: String
    public var artistName: String
    /// The address of the cover image.
    public var albumArt: String?

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
}

extension DJTrack: Record {
    public init() { self.init(trackId: "", trackName: "", artistName: "", albumArt: nil) }

    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("trackId", &trackId)
        members.member("trackName", &trackName)
        members.member("artistName", &artistName)
        members.member("albumArt", &albumArt)
    }
}

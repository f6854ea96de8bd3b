/// The bounds of DJ mode, each with what breaks without it.
public enum DJLimits {
    /// Tracks of one queue: three hours of music. A vote walks the queue to compute a position, and everybody who opens
    /// the page receives all of it; with each text at its longest it still fits what may wait for one slow stream.
    public static let tracksMax = 50
    /// Tracks of one guest in the queue at a time: ten guests have their turn before one has two pages.
    public static let tracksPerUserMax = 5
    /// Bytes of a track's or an artist's name: two lines on a phone.
    public static let nameBytesMax = 150
    /// Bytes of the address of a cover: the streaming services' have about 70.
    public static let albumArtBytesMax = 300
    /// Updates of votes that are published at once within a second of one shop. A person cannot follow more; the votes
    /// beyond them are published as one state a second, so that 10,000 votes are not 10,000 events for each watcher.
    public static let updatesPerSecondMax = 20
}

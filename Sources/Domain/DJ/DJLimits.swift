/// The limits of DJ mode, each with its reason.
public enum DJLimits {
    /// Tracks of one queue: three hours of music. A vote walks the queue to compute a position, and every client that
    /// opens the page receives the whole queue. With all texts at their longest, the queue still fits the buffer of a
    /// slow stream.
    public static let tracksMax = 50
    /// Tracks that one guest may have in the queue at a time. Ten guests get their turn before one guest fills two
    /// pages.
    public static let tracksPerUserMax = 5
    /// Bytes of the name of a track or an artist: two lines on a phone.
    public static let nameBytesMax = 150
    /// Bytes of the address of a cover. The addresses of streaming services have about 70.
    public static let albumArtBytesMax = 300
    /// Vote updates that one shop publishes individually within a second. A person cannot follow more. Further votes
    /// are published as one state per second, so that 10,000 votes are not 10,000 events for each watcher.
    public static let updatesPerSecondMax = 20
}

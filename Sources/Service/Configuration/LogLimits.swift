/// The bounds of the log.
enum LogLimits {
    /// Bytes of one value. Without it, what a peer says fills the disk; and drivers of containers cut lines at 16 KiB,
    /// which leaves two that are no JSON.
    static let valueBytesMax = 2048
    /// Bytes of a message, which are the service's own words.
    static let messageBytesMax = 4096
    /// Warnings of one kind that are written in a minute. Without it, a database that is away makes a line of each request.
    static let repetitionsShown = 10
    /// How long they are counted from the first one.
    static let repetitionWindow = Duration.seconds(60)
    /// Kinds that are told apart, of some dozens that there are. Without it, messages that change would fill the memory.
    static let kindsMax = 256
}

/// The limits of the log.
enum LogLimits {
    /// Bytes of one value. Without this limit, data from a peer could fill the disk. Container log drivers also split
    /// lines at 16 KiB, and the two halves are not JSON.
    static let valueBytesMax = 2048
    /// Bytes of a message, whose text is the service's own.
    static let messageBytesMax = 4096
    /// Warnings of one kind that are written per minute. Without this limit, a database that is away causes a line for
    /// each request.
    static let repetitionsShown = 10
    /// How long they are counted, from the first one.
    static let repetitionWindow = Duration.seconds(60)
    /// Kinds that are distinguished; there are some dozens. Without this limit, changing messages would fill the
    /// memory.
    static let kindsMax = 256
}

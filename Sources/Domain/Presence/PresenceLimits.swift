/// The bounds of presence, each with what breaks without it.
public enum PresenceLimits {
    /// How long somebody counts as present without entering the code again (decision 13). Longer, and those who have
    /// left choose the music; shorter, and those who stay must enter it all the time.
    public static let lifetimeSeconds: Int64 = 600
    /// How long a booking in progress counts at most: as long as the longest service. A booking that nobody has closed
    /// would count for ever.
    static let bookingSeconds = Int64(BookingLimits.durationMinutes.upperBound) * 60
    /// How long a code is displayed. Longer, and a code that is passed on serves those who are not there.
    public static let codeSeconds: Int64 = 60
    /// The number of valid codes, the displayed one and the one before: it may change while a guest types.
    static let codesValid: Int64 = 2
    /// Characters of a code, of 32 each: a guess hits one of the two that are valid once in 500 million times.
    static let codeLength = 6
    /// Bytes of a typed code, with hyphens and spaces.
    public static let typedBytesMax = 32
    /// Wrong codes of one user in `wrongCodesSeconds`, over all shops. More are guesses, and a guesser must need years.
    public static let wrongCodesMax = 10
    public static let wrongCodesSeconds: Int64 = 600
}

/// The limits of presence, each with its reason.
public enum PresenceLimits {
    /// How long a user counts as present without entering the code again. With a longer time, departed guests
    /// choose the music; with a shorter one, present guests must enter the code constantly.
    public static let lifetimeSeconds: Int64 = 600
    /// How long a booking in progress counts as presence: as long as the longest service. Otherwise a booking that
    /// staff forgot to close would count forever.
    static let bookingSeconds = Int64(BookingLimits.durationMinutes.upperBound) * 60
    /// How long a code is displayed. A code that is displayed longer can be passed on to absent people.
    public static let codeSeconds: Int64 = 60
    /// The number of valid codes: the displayed one and the one before. The code may change while a guest types.
    static let codesValid: Int64 = 2
    /// Characters of a code, of 32 values each. A guess hits one of the two valid codes once in 500 million times.
    static let codeLength = 6
    /// Bytes of a typed code, with hyphens and spaces.
    public static let typedBytesMax = 32
    /// Wrong codes of one user within `wrongCodesSeconds`, over all shops. Guessing a code within this limit takes
    /// years.
    public static let wrongCodesMax = 10
    public static let wrongCodesSeconds: Int64 = 600
}

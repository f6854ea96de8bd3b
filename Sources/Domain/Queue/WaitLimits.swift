/// The limits of an estimate, each with its reason.
public enum WaitLimits {
    /// A booking that is due within this time counts as waiting; a later one does not.
    public static let dueHorizonMinutes = 15.0
    /// The assumed length of a break without an announced end: a coffee. It is used only if no other barber serves.
    static let breakMinutes = 15.0
    /// The assumed rest of a break that has already lasted longer. Without it, a shop would promise no wait at all for
    /// as long as its barber is away.
    static let breakRestMinutesMin = 5.0
    /// The longest estimated wait. Without it, a shop with more black-card customers than its barbers can serve would
    /// never reach the standard lane, and a run would not end.
    public static let waitMinutesMax = 1_440.0
    /// Completed services from which service times are learned. With more, the estimate would follow a shop's change of
    /// habits too slowly and take longer.
    public static let samplesMax = 200
    /// Waiting customers that are simulated. With more, one estimate would take more than a few milliseconds. Customers
    /// behind them get the estimate of the last simulated one of their lane.
    static let customersMax = 200
    /// Barbers that are simulated, for the same reason.
    public static let barbersMax = 64

    /// Returns the assumed rest of a break that began `elapsed` minutes ago.
    public static func breakRestMinutes(elapsed: Double) -> Double {
        max(breakMinutes - max(elapsed, 0), breakRestMinutesMin)
    }
}

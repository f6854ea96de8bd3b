/// The bounds of an estimate, each with what breaks without it.
public enum WaitLimits {
    /// Decision 5: a booking due within this time counts as waiting, a later one does not.
    public static let dueHorizonMinutes = 15.0
    /// How long a break is taken to last, whose end nobody says: a coffee. It is asked only where nobody else serves.
    static let breakMinutes = 15.0
    /// How long a break goes on that has lasted longer than that. Without it a shop would promise no wait at all for as
    /// long as its barber is away.
    static let breakRestMinutesMin = 5.0
    /// No wait is estimated beyond this. Without it a shop with more black-card customers than its barbers can serve
    /// would never reach the standard lane, and a run would not end.
    public static let waitMinutesMax = 1_440.0
    /// Completed services that service times are learned from; more would follow a shop's change of habits too slowly and
    /// cost time at every estimate.
    public static let samplesMax = 200
    /// Waiting customers that are looked at; more would make one estimate cost more than a few milliseconds. Those
    /// behind get the last one's estimate of their lane.
    static let customersMax = 200
    /// Barbers that are looked at, for the same reason.
    public static let barbersMax = 64

    /// How long a break still lasts that began so long ago.
    public static func breakRestMinutes(elapsed: Double) -> Double {
        max(breakMinutes - max(elapsed, 0), breakRestMinutesMin)
    }
}

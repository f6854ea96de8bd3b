/// The order and the turn of a queued write.
public struct WriteLane: Sendable, Hashable {
    /// Writes of one lane are done in order, by one writer at a time. For writes that would otherwise wait for each
    /// other's locks.
    let number: Int
    /// Groups take turns: one with many waiting writes delays the write of another by at most one of its own. The number
    /// identifies a tenant; 0 is the service itself.
    let group: Int

    public init(_ number: Int, group: Int = 0) { (self.number, self.group) = (number, group) }

    /// The lane of the service's own work.
    public static let service = WriteLane(0)
}

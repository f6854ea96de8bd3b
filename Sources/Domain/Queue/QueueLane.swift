/// The two lanes of a shop's queue.
///
/// The black-card lane has non-preemptive priority: a barber who becomes free takes the first of it before anybody of
/// the standard lane, but nobody's service is interrupted.
public enum QueueLane: String, Sendable, Hashable, CaseIterable {
    case standard
    case blackCard
}

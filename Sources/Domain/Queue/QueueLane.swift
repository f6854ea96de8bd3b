/// The two lanes of a shop's queue.
///
/// The black-card lane has non-preemptive priority. A barber who becomes free takes the first customer of it before any
/// customer of the standard lane, but a service that has begun is not interrupted.
public enum QueueLane: String, Sendable, Hashable, CaseIterable {
    case standard
    case blackCard
}

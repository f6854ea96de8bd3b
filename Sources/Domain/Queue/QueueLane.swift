/// The two lanes of a shop's queue.
///
/// The black-card lane has non-preemptive priority. A free barber takes its first customer before any customer of the
/// standard lane, but a service that has begun is not interrupted.
public enum QueueLane: String, Sendable, Hashable, CaseIterable {
    case standard
    case blackCard
}

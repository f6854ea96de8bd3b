/// Who has proved to be whom, with what every request of theirs needs.
final class Principal: Sendable {
    let caller: Caller
    /// What was known of memberships when the caller's keys were made: see `CallerMemberships`.
    let generation: Int
    /// Nil: no limit.
    let bucket: RateBucket?

    init(caller: Caller, generation: Int, bucket: RateBucket?) {
        self.caller = caller
        self.generation = generation
        self.bucket = bucket
    }
}

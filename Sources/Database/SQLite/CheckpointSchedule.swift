/// Decides after each commit which thread moves pages from the WAL into the database.
///
/// The checkpointer moves them beside the writer, so that no caller waits for its flush. But SQLite restarts the WAL
/// only at a commit that finds all pages moved, and a busy writer adds pages while the checkpointer works. So when the
/// checkpointer has moved all pages that it saw, and few came meanwhile, the writer moves these before its next commit.
struct CheckpointSchedule {
    enum Step: Equatable {
        case wait
        case wakeCheckpointer
        /// The writer moves the pages itself.
        case moveHere
    }

    let options: StoreOptions
    /// The length of the WAL at which the next pass of the checkpointer is worth its flush.
    private var nextPass = 0

    init(_ options: StoreOptions) { self.options = options }

    /// - Parameters:
    ///   - walPages: The length of the WAL after the commit.
    ///   - movedPages: The length of the WAL when the checkpointer had moved all of it, if it has finished such a pass
    ///     since the last call.
    mutating func step(walPages: Int, movedPages: Int?) -> Step {
        guard walPages >= options.checkpointPages else {
            // The WAL was restarted, or is short.
            nextPass = 0
            return .wait
        }
        if let movedPages, movedPages <= walPages {
            if walPages - movedPages < options.checkpointPagesLeft { return .moveHere }
            // The next pass is shorter than the last, because the pages of the last are moved.
            return wake(at: walPages)
        }
        guard walPages >= max(nextPass, options.checkpointPages) else { return .wait }
        return walPages >= options.checkpointPagesMax ? .moveHere : wake(at: walPages)
    }

    private mutating func wake(at walPages: Int) -> Step {
        nextPass = walPages + options.checkpointPages
        return .wakeCheckpointer
    }

    /// Notes what a move of the writer has left.
    mutating func moved(of walPages: Int, remaining: Int) {
        // A read that ends now may prevent the next commit from restarting the WAL, so the next pass comes soon. A read
        // that left pages behind is long.
        nextPass = walPages + (remaining == 0 ? options.checkpointPagesLeft / 8 : options.checkpointPages)
    }
}

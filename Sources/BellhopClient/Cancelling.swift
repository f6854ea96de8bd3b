/// A task that ends with whoever holds it.
final class Cancelling: Sendable {
    private let task: Task<Void, Never>

    init(_ task: Task<Void, Never>) {
        self.task = task
    }

    deinit { task.cancel() }
}

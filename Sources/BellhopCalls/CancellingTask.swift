/// A task that is cancelled when this object is released.
package final class CancellingTask: Sendable {
    private let task: Task<Void, Never>

    package init(_ task: Task<Void, Never>) {
        self.task = task
    }

    deinit { task.cancel() }
}

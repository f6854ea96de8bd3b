import Foundation
import Glibc

/// A thread that can be waited for, and that can tell whether it is the one that runs.
///
/// `Foundation.Thread` cannot be joined, and a stop that returns before the thread has ended would let the process tear
/// down what the thread still uses.
struct StreamThread: Sendable {
    private let thread: pthread_t

    /// - Parameter name: what the system shows; 15 bytes of it are kept.
    init(name: String, _ body: @escaping @Sendable () -> Void) throws(StreamShardError) {
        let boxed = Unmanaged.passRetained(Body(name: name, run: body))
        var thread = pthread_t()
        let code = pthread_create(&thread, nil, runStreamThread, boxed.toOpaque())
        guard code == 0 else {
            boxed.release()
            throw StreamShardError("pthread_create", code)
        }
        self.thread = thread
    }

    func join() { pthread_join(thread, nil) }

    fileprivate final class Body: Sendable {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }
}

@Sendable private func runStreamThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let body = Unmanaged<StreamThread.Body>.fromOpaque(argument).takeRetainedValue()
    Thread.current.name = body.name
    body.run()
    return nil
}

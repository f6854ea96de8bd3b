import Foundation
import Glibc

/// A named thread that runs a loop until it is stopped, and that can be joined.
///
/// The body is the loop. Between two passes it calls `wait`, which returns when there is work or the time is over.
/// The result says whether to continue:
///
///     thread.start { [self] in
///         while thread.wait(atMost: .seconds(1)) { runDue() }
///     }
///
/// A loop that waits for something else (a queue, a socket) does not call `wait`; the code that stops it must end
/// that wait too. Everything that the body owns (a connection, a table of sockets) belongs to this thread, and is
/// released before `stop` returns. Foundation's `Thread` cannot be joined. If a stop returned earlier, the process
/// could tear down what the thread still uses.
public final class LoopThread: Sendable {
    private struct State {
        var thread: pthread_t?
        var isJoining = false
        var isWoken = false
        var isStopping = false
    }

    private final class Body {
        let name: String
        let run: () -> Void

        init(_ name: String, _ run: @escaping () -> Void) {
            self.name = name
            self.run = run
        }
    }

    private let name: String
    private let state = Locked(State())

    /// Creates a thread, without starting it.
    ///
    /// - Parameter name: The name that the system shows; it shows 15 bytes.
    public init(_ name: String) { self.name = name }

    deinit {
        if let thread = state.withLock({ $0.thread }) { pthread_detach(thread) }
    }

    /// Starts the thread. It may be started again after it was stopped.
    public func start(_ body: sending @escaping () -> Void) {
        let boxed = Unmanaged.passRetained(Body(name, body))
        // Started under the lock, so that the thread can identify itself from its first step.
        let code = state.withLock { state in
            precondition(state.thread == nil, "\(name) is already running")
            state.isStopping = false
            var thread = pthread_t()
            let code = pthread_create(&thread, nil, { LoopThread.run($0) }, boxed.toOpaque())
            if code == 0 { state.thread = thread }
            return code
        }
        guard code == 0 else { fatalError("thread \(name) cannot be started: \(String(cString: strerror(code)))") }
    }

    private static func run(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let argument else { return nil }
        let body = Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
        Thread.current.name = body.name
        body.run()
        return nil
    }

    // MARK: Inside the loop

    /// Waits for `wake` or for the time limit. Returns false when the loop must end.
    public func wait(atMost duration: Duration? = nil) -> Bool {
        let next: (inout State) -> Bool? = { state in
            if state.isStopping { return false }
            guard state.isWoken else { return nil }
            state.isWoken = false
            return true
        }
        guard let duration else { return state.wait(for: next) }
        return state.wait(atMost: duration, for: next) ?? true
    }

    /// Waits for the full time, regardless of `wake`. Returns false when the loop must end.
    public func pause(for duration: Duration) -> Bool {
        state.wait(atMost: duration) { $0.isStopping ? false : nil } ?? true
    }

    /// Whether the loop must end. A long pass checks this between its steps.
    public var isStopping: Bool { state.withLock { $0.isStopping } }

    // MARK: From other threads

    /// Ends the current `wait`, or the next one.
    public func wake() {
        let isNew = state.withLock { state in
            defer { state.isWoken = true }
            return !state.isWoken
        }
        if isNew { state.broadcast() }
    }

    /// Requests the loop to end, without waiting for it.
    public func requestStop() {
        state.withLock { $0.isStopping = true }
        state.broadcast()
    }

    /// Ends the loop, and waits until the thread has ended. Does nothing if the thread is not running. Must not be
    /// called on the thread itself.
    public func stop() {
        requestStop()
        join()
    }

    /// Waits until the thread has ended. Several threads may call it.
    public func join() {
        precondition(!isCurrent, "\(name) would wait for itself")
        // One caller joins the thread; the others wait for that caller.
        let found: [pthread_t] = state.wait { state in
            guard let thread = state.thread else { return [] }
            if state.isJoining { return nil }
            state.isJoining = true
            return [thread]
        }
        guard let thread = found.first else { return }
        pthread_join(thread, nil)
        state.withLock { state in
            state.thread = nil
            state.isJoining = false
        }
        state.broadcast()
    }

    /// Whether the caller runs on this thread.
    public var isCurrent: Bool {
        state.withLock { $0.thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }
}

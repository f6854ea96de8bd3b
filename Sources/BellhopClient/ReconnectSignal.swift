import Threads

/// Wakes streams that wait between two tries: they try at once, and count from the start: the network is back, or the
/// app has come to the foreground (`CUT N-3`, decision 14).
public final class ReconnectSignal: Sendable {
    private struct State {
        var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
        /// Keys whose sleep ended before their wait began.
        var ended: Set<Int> = []
        var nextKey = 0
    }

    private let state = Locked(State())

    public init() {}

    /// Wakes every stream that is waiting now; one that is connected is not disturbed.
    public func reconnectNow() {
        let woken = state.withLock { state in
            defer { state.waiting.removeAll() }
            return state.waiting
        }
        for continuation in woken.values { continuation.resume(returning: true) }
    }

    /// True if it was woken before the sleep ended.
    func wait(orSleep sleep: @escaping @Sendable () async throws -> Void) async throws -> Bool {
        let key = makeKey()
        let sleeper = Task {
            let result = await Result { try await sleep() }
            end(key)
            try result.get()
        }
        return try await withTaskCancellationHandler {
            let isWoken = await withCheckedContinuation { begin(key, $0) }
            sleeper.cancel()
            let slept = await sleeper.result
            forget(key)
            try Task.checkCancellation()
            if !isWoken { try slept.get() }
            return isWoken
        } onCancel: {
            sleeper.cancel()
        }
    }

    private func makeKey() -> Int {
        state.withLock { state in
            state.nextKey += 1
            return state.nextKey
        }
    }

    private func begin(_ key: Int, _ continuation: CheckedContinuation<Bool, Never>) {
        let hasEnded = state.withLock { state in
            guard !state.ended.contains(key) else { return true }
            state.waiting[key] = continuation
            return false
        }
        if hasEnded { continuation.resume(returning: false) }
    }

    private func forget(_ key: Int) { _ = state.withLock { $0.ended.remove(key) } }

    private func end(_ key: Int) {
        let continuation = state.withLock { state in
            let continuation = state.waiting.removeValue(forKey: key)
            if continuation == nil { state.ended.insert(key) }
            return continuation
        }
        continuation?.resume(returning: false)
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

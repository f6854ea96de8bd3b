import Foundation

/// Tells streams that wait between two tries to try at once and to count from the start: the network is back, or the
/// app has come to the foreground (`CUT N-3`, decision 14).
///
/// `@unchecked Sendable`: `waiting`, `ended` and `nextKey` are guarded by `lock`.
public final class ReconnectSignal: @unchecked Sendable {
    private let lock = NSLock()
    private var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
    private var nextKey = 0

    public init() {}

    /// Wakes every stream that is waiting now; one that is connected is not disturbed.
    public func reconnectNow() {
        lock.lock()
        let woken = waiting
        waiting.removeAll()
        lock.unlock()
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

    /// Keys whose sleep ended before their wait began.
    private var ended: Set<Int> = []

    private func makeKey() -> Int {
        lock.lock()
        defer { lock.unlock() }
        nextKey += 1
        return nextKey
    }

    private func begin(_ key: Int, _ continuation: CheckedContinuation<Bool, Never>) {
        lock.lock()
        if ended.contains(key) {
            lock.unlock()
            return continuation.resume(returning: false)
        }
        waiting[key] = continuation
        lock.unlock()
    }

    private func forget(_ key: Int) {
        lock.lock()
        defer { lock.unlock() }
        ended.remove(key)
    }

    private func end(_ key: Int) {
        lock.lock()
        let continuation = waiting.removeValue(forKey: key)
        if continuation == nil { ended.insert(key) }
        lock.unlock()
        continuation?.resume(returning: false)
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

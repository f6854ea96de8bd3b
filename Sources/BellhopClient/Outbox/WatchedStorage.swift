import Foundation

/// The app's storage, whose failures are reported.
///
/// A device may refuse its files for a while: the disk is full, the device has not been unlocked since its start, or the
/// directory was removed. A call that fails is repeated once, so that a storage with a connection can open it again.
final class WatchedStorage: ClientStorage {
    private struct State {
        var isFailing = false
        /// Called with the reason when the storage begins to fail, and with nil when it works again.
        var report: @Sendable (String?) -> Void = { _ in }
    }

    private let storage: any ClientStorage
    /// Callbacks run outside of its lock.
    private let state = Guarded(State())

    init(_ storage: any ClientStorage) { self.storage = storage }

    func observe(_ report: @escaping @Sendable (String?) -> Void) { state.withLock { $0.report = report } }

    func get(_ key: String) async throws -> Data? { try await watched { try await $0.get(key) } }

    func set(_ key: String, _ value: Data) async throws { try await watched { try await $0.set(key, value) } }

    func remove(_ key: String) async throws { try await watched { try await $0.remove(key) } }

    func keys(beginningWith prefix: String) async throws -> [String] {
        try await watched { try await $0.keys(beginningWith: prefix) }
    }

    private func watched<Value: Sendable>(
        _ use: @Sendable (any ClientStorage) async throws -> Value
    ) async throws -> Value {
        do {
            let value: Value
            do { value = try await use(storage) } catch { value = try await use(storage) }
            note(nil)
            return value
        } catch {
            note("\(error)")
            throw error
        }
    }

    private func note(_ reason: String?) {
        let report: (@Sendable (String?) -> Void)? = state.withLock { state in
            guard state.isFailing != (reason != nil) else { return nil }
            state.isFailing = reason != nil
            return state.report
        }
        report?(reason)
    }
}

/// What a device knows of its network.
public struct NetworkState: Sendable, Hashable {
    public let isOnline: Bool
    /// It is another one than before, as when a phone leaves the house: connections of the old one are dead, and nothing
    /// says so.
    public let isChanged: Bool

    public init(isOnline: Bool, isChanged: Bool = false) {
        self.isOnline = isOnline
        self.isChanged = isChanged
    }
}

/// Whether there is a network, as far as the device knows.
public protocol NetworkMonitor: Sendable {
    var isOnline: Bool { get }
    /// From now on.
    func changes() -> AsyncStream<NetworkState>
}

/// Whether the app is in the foreground.
public protocol AppLifecycle: Sendable {
    var isForeground: Bool { get }
    /// From now on: true when it comes to the foreground, false when it leaves it.
    func changes() -> AsyncStream<Bool>
}

/// A device that tells nothing of its network, as on Linux: it is online, until a request says otherwise. An app that
/// knows better says so.
public final class ToldNetwork: NetworkMonitor {
    private let state: Told<NetworkState>

    public init(isOnline: Bool = true) {
        state = Told(NetworkState(isOnline: isOnline))
    }

    public var isOnline: Bool { state.value.isOnline }
    public func changes() -> AsyncStream<NetworkState> { state.changes() }

    /// - Parameter isChanged: it is another network than before.
    public func tell(isOnline: Bool, isChanged: Bool = false) {
        state.tell(NetworkState(isOnline: isOnline, isChanged: isChanged))
    }
}

/// An app that is always in the foreground, as a server's and a command's is; or that says itself where it is.
public final class ToldLifecycle: AppLifecycle {
    private let state: Told<Bool>

    public init(isForeground: Bool = true) {
        state = Told(isForeground)
    }

    public var isForeground: Bool { state.value }
    public func changes() -> AsyncStream<Bool> { state.changes() }
    public func tell(isForeground: Bool) { state.tell(isForeground) }
}

/// A value that somebody tells, and all who listen.
final class Told<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        var listeners: [Int: AsyncStream<Value>.Continuation] = [:]
        var count = 0
    }

    private let state: Locked<State>

    init(_ value: Value) {
        state = Locked(State(value: value))
    }

    var value: Value { state.withLock { $0.value } }

    func changes() -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream<Value>.makeStream(bufferingPolicy: .bufferingNewest(64))
        let key = state.withLock { state in
            state.count += 1
            state.listeners[state.count] = continuation
            return state.count
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.listeners.removeValue(forKey: key) }
        }
        return stream
    }

    func tell(_ value: Value) {
        let listeners = state.withLock { state in
            state.value = value
            return state.listeners.values.map(\.self)
        }
        for listener in listeners { listener.yield(value) }
    }
}

/// The device's view of its network.
public struct NetworkState: Sendable, Hashable {
    public let isOnline: Bool
    /// Whether the device switched to another network, such as when a phone leaves the house. Connections of the old
    /// network are dead, and no error reports it.
    public let isChanged: Bool

    public init(isOnline: Bool, isChanged: Bool = false) {
        self.isOnline = isOnline
        self.isChanged = isChanged
    }
}

/// A source of the device's network state.
public protocol NetworkMonitor: Sendable {
    var isOnline: Bool { get }
    /// Returns the changes from now on.
    func changes() -> AsyncStream<NetworkState>
}

/// A source of the app's lifecycle: foreground or background.
public protocol AppLifecycle: Sendable {
    var isForeground: Bool { get }
    /// Returns the changes from now on: true when the app enters the foreground, false when it leaves it.
    func changes() -> AsyncStream<Bool>
}

/// A monitor for devices that do not report their network, as on Linux. The device counts as online until a request
/// fails; an app that knows the state sets it.
public final class ManualNetwork: NetworkMonitor {
    private let state: ManualValue<NetworkState>

    public init(isOnline: Bool = true) {
        state = ManualValue(NetworkState(isOnline: isOnline))
    }

    public var isOnline: Bool { state.value.isOnline }
    public func changes() -> AsyncStream<NetworkState> { state.changes() }

    /// - Parameter isChanged: whether the device switched to another network.
    public func tell(isOnline: Bool, isChanged: Bool = false) {
        state.tell(NetworkState(isOnline: isOnline, isChanged: isChanged))
    }
}

/// The lifecycle of an app that is always in the foreground, as a server or a command is, or that reports its state
/// itself.
public final class ManualLifecycle: AppLifecycle {
    private let state: ManualValue<Bool>

    public init(isForeground: Bool = true) {
        state = ManualValue(isForeground)
    }

    public var isForeground: Bool { state.value }
    public func changes() -> AsyncStream<Bool> { state.changes() }
    public func tell(isForeground: Bool) { state.tell(isForeground) }
}

/// A value that is set from outside, with its listeners.
final class ManualValue<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        var listeners: [Int: AsyncStream<Value>.Continuation] = [:]
        var count = 0
    }

    private let state: Guarded<State>

    init(_ value: Value) {
        state = Guarded(State(value: value))
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

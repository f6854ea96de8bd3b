/// The result of a command, which the caller may await or ignore.
public struct Command: Sendable {
    let promise: Promise<Result<ServiceAnswer, any Error>>?

    /// Waits for the service's answer, which may come after the device was offline. Returns nil if there was nothing to
    /// request. Throws a ``BellhopCalls/Bellhop/Problem`` if the service refused it, and an ``UnsentWrite`` if it was
    /// not sent.
    @discardableResult
    public func answer() async throws -> ServiceAnswer? {
        guard let answer = try await promise?.value.get() else { return nil }
        guard answer.isSuccess else { throw Bellhop.Problem(answer) }
        return answer
    }
}

/// A value that is set later, once.
final class Promise<Value: Sendable>: Sendable {
    private let state = Guarded<(value: Value?, waiting: [CheckedContinuation<Value, Never>])>((nil, []))

    func fulfil(_ value: Value) {
        let waiting = state.withLock { state in
            guard state.value == nil else { return [CheckedContinuation<Value, Never>]() }
            state.value = value
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: value) }
    }

    var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let value = state.withLock { state in
                    if state.value == nil { state.waiting.append(continuation) }
                    return state.value
                }
                if let value { continuation.resume(returning: value) }
            }
        }
    }
}

/// The interface through which a bell informs its stores.
@MainActor protocol BellStore: AnyObject {
    var isWatched: Bool { get }
    /// Names of events that other stores emit and the stream does not.
    var localEvents: Set<String> { get }
    /// The name of its state on the device; nil if no state is kept.
    var name: String? { get }
    var kept: (any Encodable & Sendable)? { get }
    func take(_ input: BellInput)
    func close()
}

/// One feature of a ``Bell``: its current state, its changes, and the user's commands.
///
/// ``snapshot`` is the state to draw; ``updates`` yields it again after each change. While `updates` has a reader, the
/// store is subscribed to its topic.
@MainActor public final class Store<Machine: ShownMachine>: BellStore {
    public private(set) var snapshot: Machine.Snapshot
    private(set) var machine: Machine
    let name: String?
    let localEvents: Set<String>
    let bell: Bell
    private var timers = Timers()
    private var listeners: [Int: AsyncStream<Machine.Snapshot>.Continuation] = [:]
    private var count = 0
    /// Counts the users of this store, so that answers for an earlier user are ignored.
    private var users = 0
    private var isClosed = false
    /// Whether the store has received what the device keeps of it. Its state before that must not replace the kept one.
    private var isOpened = false
    /// Refusals of topics that happened before this store asked for them.
    private var refusals: [BellInput] = []
    /// Whether the store is kept although it has no reader, such as for watched queries.
    var isHeld = false

    init(_ machine: Machine, _ name: String? = nil, of bell: Bell, localEvents: Set<String> = []) {
        self.machine = machine
        self.name = name
        self.bell = bell
        self.localEvents = localEvents
        snapshot = machine.snapshot
        bell.attach(self)
        take(.start(user: bell.user, isLive: bell.connection.status == .live))
        bell.restore(self)
        isOpened = true
    }

    /// The current state, then each change. A slow reader only receives the latest.
    public var updates: AsyncStream<Machine.Snapshot> {
        let (stream, continuation) = AsyncStream<Machine.Snapshot>.makeStream(bufferingPolicy: .bufferingNewest(1))
        count += 1
        let key = count
        listeners[key] = continuation
        continuation.onTermination = { _ in Task { @MainActor [weak self] in self?.stopUpdates(key) } }
        if listeners.count == 1 { take(.watch(isWatched: true)) }
        continuation.yield(snapshot)
        if isClosed { continuation.finish() }
        return stream
    }

    var kept: (any Encodable & Sendable)? { machine.kept }

    var isWatched: Bool { !listeners.isEmpty || isHeld }

    /// Fetches the current state from the service. The shown state stays until the answer comes.
    @discardableResult
    public func refresh() -> Command { Command(promise: receive(.refresh).first) }

    private func stopUpdates(_ key: Int) {
        guard listeners.removeValue(forKey: key) != nil, listeners.isEmpty else { return }
        take(.watch(isWatched: false))
    }

    @discardableResult
    func run(_ command: Machine.OwnCommand) -> Command { Command(promise: receive(.command(command)).first) }

    func take(_ input: BellInput) { receive(FeatureInput(input)) }

    func close() {
        isClosed = true
        timers.stopAll()
        bell.detach(self)
        for listener in listeners.values { listener.finish() }
        listeners = [:]
    }

    @discardableResult
    private func receive(_ input: FeatureInput<Machine.OwnCommand>) -> [Promise<Result<ServiceAnswer, any Error>>] {
        guard !isClosed else { return [] }
        if case .user = input { users += 1 }
        let actions = machine.receive(input, now: bell.clock.now())
        var promises = actions.compactMap { perform($0, input) }
        while !refusals.isEmpty {
            let refusal = FeatureInput<Machine.OwnCommand>(refusals.removeFirst())
            promises += machine.receive(refusal, now: bell.clock.now()).compactMap { perform($0, refusal) }
        }
        let shown = machine.snapshot
        guard shown != snapshot else { return promises }
        snapshot = shown
        if let name, isOpened { bell.lastState?.noteChange(of: name) }
        for listener in listeners.values { listener.yield(shown) }
        return promises
    }

    /// - Parameter cause: The input that led to the action.
    private func perform(
        _ action: FeatureAction, _ cause: FeatureInput<Machine.OwnCommand>
    ) -> Promise<Result<ServiceAnswer, any Error>>? {
        let user = users
        switch action {
        case .fetch(let path, let name): return call("GET", path, body: nil, name: name)
        case .call(let method, let path, let body, let name):
            let promise = call(method, path, body: body, name: name)
            bell.registering = promise
            return promise
        case .push(let action): bell.changeScreen { await action.perform(on: $0) }
        case .send(let method, let path, let body, let headers, let name):
            let promise = Promise<Result<ServiceAnswer, any Error>>()
            bell.deliver(
                EarlyWrite(method: method, path: path, body: body, key: EarlyWrite.newKey, headers: headers) {
                    [weak self] result in
                    promise.fulfil(result)
                    Task { @MainActor in self?.answered(name, result, user) }
                })
            return promise
        case .timer(let name, let at):
            timers.set(name, at: at, bell.clock) { [weak self] number in await self?.fire(name, number) }
        case .play(let haptic, let sound, let key): bell.play(haptic, sound, key: key, text: NotificationText(cause))
        case .publish(let name, let data): bell.publish(name, data)
        case .subscribe(let topics):
            bell.subscribe(self, topics: topics)
            // A topic that was refused to another store causes no second refusal, so this store is informed here.
            for topic in topics { if let event = bell.refusal(of: topic) { refusals.append(event) } }
        case .tables(let tables, let lastEventId, let name):
            bell.subscribe(self, tables: tables, lastEventId: lastEventId) { [weak self] answer in
                self?.answered(name, .success(answer), user)
            }
        }
        return nil
    }

    private func call(
        _ method: String, _ path: String, body: JSON?, name: String
    ) -> Promise<Result<ServiceAnswer, any Error>> {
        let promise = Promise<Result<ServiceAnswer, any Error>>()
        let (user, client) = (users, bell.client)
        Task { [weak self] in
            do {
                let answer = try await client.send(method, path, body)
                promise.fulfil(.success(answer))
                self?.answered(name, .success(answer), user)
            } catch {
                promise.fulfil(.failure(error))
                self?.answered(name, .failure(error), user)
            }
        }
        return promise
    }

    func answered(_ name: String, _ result: Result<ServiceAnswer, any Error>, _ user: Int? = nil) {
        guard (user ?? users) == users else { return }
        switch result {
        case .success(let answer):
            let wait = answer.waitMilliseconds(bell.clock)
            take(
                .answer(
                    as: name, status: answer.status, body: answer.json,
                    retryAfterSeconds: wait > 0 ? (wait + 999) / 1000 : nil))
        case .failure(let error):
            let code = (error as? UnsentWrite)?.reason.rawValue ?? (error as? TokenFailure)?.code ?? "unreachable"
            let body: JSON = ["code": .string(code), "detail": .string("\(error)")]
            take(.answer(as: name, status: 0, body: body, retryAfterSeconds: nil))
        }
    }

    private func fire(_ name: String, _ number: Int) {
        guard timers.take(name, number) else { return }
        take(.timer(name))
    }
}

extension NotificationText {
    /// Nil if the input is no new notification.
    fileprivate init?<OwnCommand>(_ input: FeatureInput<OwnCommand>) {
        guard case .event(let event) = input, case .notificationCreated(let item) = event.typed else { return nil }
        self.init(id: item.id, title: item.title, text: item.message, lockScreen: item.lockScreen)
    }
}

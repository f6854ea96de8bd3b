import Foundation

/// A machine whose state an app can show.
public protocol ShownMachine: FeatureMachine {
    associatedtype Snapshot: Sendable & Hashable
    /// The state in the models of the service.
    func snapshot(_ models: inout ModelCache) -> Snapshot
}

/// Models that were read from JSON, so that what has not changed is not read again.
public struct ModelCache {
    private static let decoder = Bellhop.decoder
    private var before: [JSON: any Sendable] = [:]
    private var now: [JSON: any Sendable] = [:]

    init() {}

    /// What a newer service writes in another form is passed over.
    mutating func models<Model: Decodable & Sendable>(_ items: [JSON]) -> [Model] {
        items.compactMap { model($0) }
    }

    mutating func model<Model: Decodable & Sendable>(_ json: JSON) -> Model? {
        guard !json.isNull else { return nil }
        if let known = before[json] as? Model ?? now[json] as? Model {
            now[json] = known
            return known
        }
        guard let model = try? ModelCache.decoder.decode(Model.self, from: json.data) else { return nil }
        now[json] = model
        return model
    }

    /// Forgets what the last snapshot did not ask for.
    mutating func turn() {
        (before, now) = (now, [:])
    }
}

/// What a command brings: to be awaited, or not.
public struct Command: Sendable {
    let promise: Promise<Result<ServiceAnswer, any Error>>?

    /// Waits for the service's answer, which may come after the device was offline; nil where there was nothing to ask
    /// for. Throws a ``Bellhop/Problem`` where it was refused, and an ``UnsentWrite`` where it was not sent.
    @discardableResult
    public func answer() async throws -> ServiceAnswer? {
        guard let answer = try await promise?.value.get() else { return nil }
        guard answer.isSuccess else { throw Bellhop.Problem(answer) }
        return answer
    }
}

/// A value that comes later, once.
final class Promise<Value: Sendable>: Sendable {
    private let state = Locked<(value: Value?, waiting: [CheckedContinuation<Value, Never>])>((nil, []))

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

/// What a bell tells its stores.
@MainActor protocol BellStore: AnyObject {
    var isWatched: Bool { get }
    /// Names of what other stores tell, and the stream does not.
    var hears: Set<String> { get }
    func take(_ input: FeatureInput)
    func close()
}

/// One feature of a ``Bell``: its state as it is now, what changes it, and the user's commands.
///
/// ``snapshot`` is what to draw; ``updates`` has it again each time that it has changed. While somebody reads `updates`,
/// the topic of what is shown is subscribed to.
@MainActor public final class Store<Machine: ShownMachine>: BellStore {
    public private(set) var snapshot: Machine.Snapshot
    private(set) var machine: Machine
    let hears: Set<String>
    let bell: Bell
    private var cache = ModelCache()
    private var timers = Timers()
    private var listeners: [Int: AsyncStream<Machine.Snapshot>.Continuation] = [:]
    private var count = 0
    /// Users that this store has had: what was asked for the one before is nobody's any more.
    private var users = 0
    private var isClosed = false
    /// Of topics that were refused before this one asked for them.
    private var refusals: [FeatureInput] = []
    /// A store that something stands on beside its readers, such as watched queries, is kept.
    var isHeld = false

    init(_ machine: Machine, of bell: Bell, hears: Set<String> = []) {
        self.machine = machine
        self.bell = bell
        self.hears = hears
        snapshot = machine.snapshot(&cache)
        bell.attach(self)
        take(.start(user: bell.user, isLive: bell.connection.status == .live))
    }

    /// The present state, and then each change; a reader that is slow finds the last one.
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

    var isWatched: Bool { !listeners.isEmpty || isHeld }

    /// Asks the service for the present state; what is shown stays until it comes.
    @discardableResult
    public func refresh() -> Command { run("refresh") }

    private func stopUpdates(_ key: Int) {
        guard listeners.removeValue(forKey: key) != nil, listeners.isEmpty else { return }
        take(.watch(isWatched: false))
    }

    @discardableResult
    func run(_ command: String, _ wish: JSON = .null) -> Command {
        let promises = receive(.command(command, wish))
        return Command(promise: promises.first)
    }

    func take(_ input: FeatureInput) { receive(input) }

    func close() {
        isClosed = true
        timers.stopAll()
        bell.detach(self)
        for listener in listeners.values { listener.finish() }
        listeners = [:]
    }

    @discardableResult
    private func receive(_ input: FeatureInput) -> [Promise<Result<ServiceAnswer, any Error>>] {
        guard !isClosed else { return [] }
        if case .user = input { users += 1 }
        let actions = machine.receive(input, now: bell.clock.now())
        var promises = actions.compactMap(perform)
        while !refusals.isEmpty {
            promises += machine.receive(refusals.removeFirst(), now: bell.clock.now()).compactMap(perform)
        }
        let shown = machine.snapshot(&cache)
        cache.turn()
        guard shown != snapshot else { return promises }
        snapshot = shown
        for listener in listeners.values { listener.yield(shown) }
        return promises
    }

    private func perform(_ action: FeatureAction) -> Promise<Result<ServiceAnswer, any Error>>? {
        let user = users
        switch action {
        case .fetch(let path, let name): return fetch(path, name)
        case .send(let method, let path, let body, let headers, let name):
            let promise = Promise<Result<ServiceAnswer, any Error>>()
            bell.deliver(method, path, body, headers: headers) { [weak self] result in
                promise.fulfil(result)
                Task { @MainActor in self?.answered(name, result, user) }
            }
            return promise
        case .timer(let name, let at):
            timers.set(name, at: at, bell.clock) { [weak self] number in await self?.fire(name, number) }
        case .play(let haptic, let sound, let key): bell.play(haptic, sound, key)
        case .tell(let name, let data): bell.tell(name, data)
        case .subscribe(let topics):
            bell.want(self, topics: topics)
            // What another one has asked for already, and was refused, is not refused once more.
            for topic in topics { if let event = bell.refusal(of: topic) { refusals.append(event) } }
        case .tables(let tables, let lastEventId, let name):
            bell.want(self, tables: tables, lastEventId: lastEventId) { [weak self] answer in
                self?.answered(name, .success(answer), user)
            }
        }
        return nil
    }

    private func fetch(_ path: String, _ name: String) -> Promise<Result<ServiceAnswer, any Error>> {
        let promise = Promise<Result<ServiceAnswer, any Error>>()
        let (user, client) = (users, bell.client)
        Task { [weak self] in
            do {
                let answer = try await client.get(path)
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
            let code = (error as? UnsentWrite)?.reason.rawValue ?? "unreachable"
            let body: JSON = ["code": .string(code), "detail": .string("\(error)")]
            take(.answer(as: name, status: 0, body: body, retryAfterSeconds: nil))
        }
    }

    private func fire(_ name: String, _ number: Int) {
        guard timers.take(name, number) else { return }
        take(.timer(name))
    }
}

extension Bellhop.Problem {
    /// As machines have it; nil where there is none.
    init?(_ json: JSON) {
        guard let status = json["status"].int else { return nil }
        self.init(
            status: status, code: json["code"].string.map { Code(rawValue: $0) }, detail: json["detail"].string ?? "",
            errors: json["pointer"].string.map { [Place(pointer: $0, detail: json["detail"].string ?? "")] } ?? [],
            allowed: json["allowed"].strings)
    }
}

import Foundation

/// A write that was not sent, or that may or may not have been executed.
public struct UnsentWrite: Error, Sendable, Hashable, CustomStringConvertible {
    public enum Reason: String, Sendable, Hashable {
        /// The outbox is full.
        case full = "outbox.full"
        /// The write may have been executed longer ago than the service remembers. Resending it could execute it twice.
        case uncertain = "outbox.uncertain"
        /// The user has signed out. Stored writes wait until the user is back.
        case signedOut = "outbox.signed_out"
    }

    public let reason: Reason
    public let key: String

    public var description: String { "the write \(key) was not sent: \(reason.rawValue)" }
}

/// A write that the outbox cannot send to this service.
public struct UnusableWrite: Error, Sendable, Hashable, CustomStringConvertible {
    public let description: String
}

/// A queue of writes that survive being offline and the end of the process: sent one after another in the order of
/// creation, each executed once (`R-VIS-NFR-2.3`, `R-CUT-N-3`).
///
/// Each write is stored before it is sent, with its own `Idempotency-Key`, so that resending a write whose answer was
/// lost does not execute it twice.
public final class Outbox: Sendable {
    /// The result of a write.
    public struct Answered: Sendable {
        public let item: OutboxItem
        /// Nil if it was not sent.
        public let answer: ServiceAnswer?
        public let failure: UnsentWrite?
    }

    typealias Done = @Sendable (Result<ServiceAnswer, UnsentWrite>) -> Void

    /// Callbacks for the outbox's events.
    struct Events: Sendable {
        /// Also called for writes of an earlier process.
        var answered: @Sendable (Answered) -> Void = { _ in }
        var waiting: @Sendable (Int) -> Void = { _ in }
    }

    private struct State {
        var machine: OutboxMachine
        var timers = Timers()
        var events = Events()
        /// Unanswered writes.
        var pending: [String: Pending] = [:]
        /// The keys of writes that the storage has not accepted.
        var unstored: Set<String> = []
        /// The running write to the storage.
        var storing: Task<Void, Never>?
        var toStore: [Draft] = []
        var isStoring = false
        /// Whether the writes of an earlier process have been loaded.
        var isStarted = false
        /// The keys of the last answered writes. A concurrent read of the storage may still return them.
        var doneKeys: [String] = []
        var isLive = false
        var order = 0
        var isClosed = false
    }

    /// The request of a write. Repeating it with the same key before the answer counts as the same write.
    private struct Request: Equatable {
        let method: String
        let path: String
        let body: JSON?
    }

    private struct Pending {
        let request: Request
        var done: [Done]
    }

    /// A write without a position in the queue yet.
    private struct Draft {
        let key: String
        let request: Request
        let headers: [String: String]?
        let tried: Int?

        func item(_ order: String, _ identity: String?) -> OutboxItem {
            OutboxItem(
                key: key, order: order, method: request.method, path: request.path, body: request.body,
                headers: headers, tried: tried, identity: identity)
        }
    }

    /// The largest body that is kept for later; the service accepts less for nearly every request.
    private static let bodyBytesMax = 1 << 18
    private static let pendingMax = 1000
    private static let storeAgainMilliseconds = 10_000

    private let client: BellhopClient
    private let storage: any ClientStorage
    private let prefix: String
    private let identity: String?
    private let clock: ClientClock
    /// Distinguishes writes that two processes made at the same moment, such as after the clock was set back.
    private let tag = String(UInt32.random(in: .min ... .max), radix: 36)
    /// Callbacks run outside of its lock.
    private let state: Guarded<State>

    /// - Parameters:
    ///   - name: the owner of the writes; one user's write must never be sent as another user.
    public convenience init(
        client: BellhopClient, storage: any ClientStorage, name: String, clock: ClientClock = .system
    ) {
        self.init(client: client, storage: storage, prefix: "\(name) outbox/", isOnline: true, clock: clock)
    }

    init(
        client: BellhopClient, storage: any ClientStorage, prefix: String, identity: String? = nil, isOnline: Bool,
        clock: ClientClock, events: Events = Events()
    ) {
        self.client = client
        self.storage = storage
        self.prefix = prefix
        self.identity = identity
        self.clock = clock
        let machine = OutboxMachine(isOnline: isOnline, isRestored: false, identity: identity)
        state = Guarded(State(machine: machine, events: events))
    }

    /// The writes that wait to be sent, in order.
    var items: [OutboxItem] {
        state.withLock { state in state.machine.items + state.toStore.map { $0.item("", identity) } }
    }

    /// The writes that this outbox sends. Writes of another identity stay where they are.
    var ownItems: [OutboxItem] { items.filter { $0.identity == identity } }

    /// Whether the writes of an earlier process have been loaded.
    var isStarted: Bool { state.withLock { $0.isStarted } }

    /// Number of writes that wait to be sent.
    public var waitingCount: Int { state.withLock { $0.machine.items.count + $0.toStore.count } }

    /// Starts sending, beginning with the writes of an earlier process.
    public func start() async { start(with: await stored()) }

    /// - Parameter items: The writes of an earlier process, as ``stored()`` returns them.
    func start(with items: [OutboxItem]) {
        let done = state.withLock { state in
            state.isStarted = true
            // New writes go behind these, whatever the clock says.
            let numbers = items.compactMap { Int($0.order.prefix { $0 != "-" }, radix: 36) }
            state.order = max(state.order, numbers.max() ?? 0)
            return state.doneKeys
        }
        receive(.restored(items.filter { !done.contains($0.key) }))
        storeNext()
    }

    /// Sends a write now or when the network allows. A refusal (409, 422 …) is an answer.
    ///
    /// - Parameter key: an `Idempotency-Key` chosen by the app.
    public func send(
        _ method: String, _ path: String, _ body: JSON? = nil, key: String? = nil, headers: [String: String] = [:]
    ) async throws -> ServiceAnswer {
        let key = key ?? UUID().uuidString.lowercased()
        return try await withCheckedThrowingContinuation { continuation in
            do {
                try put(method, path, body, key: key, headers: headers) { continuation.resume(with: $0) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    /// Reports that the device's network came or went.
    public func network(isOnline: Bool) { receive(.network(isOnline: isOnline)) }

    /// Stops sending; waiting writes stay stored.
    public func close() {
        let pending = state.withLock { state in
            state.isClosed = true
            state.timers.stopAll()
            defer { state.pending = [:] }
            return state.pending
        }
        for (key, waiting) in pending {
            for done in waiting.done { done(.failure(UnsentWrite(reason: .signedOut, key: key))) }
        }
    }

    /// Stops sending and deletes the stored writes. Returns them in order, including writes that were not stored yet.
    func forget() async -> [OutboxItem] {
        close()
        let (drafts, storing) = state.withLock { state in
            _ = state.machine.receive(.forget, now: clock.now(), random: 0)
            return (state.toStore.map { $0.item("", identity) }, state.storing)
        }
        await storing?.value
        let items = await stored()
        for item in items { try? await storage.remove(prefix + item.order) }
        return items + drafts.filter { draft in !items.contains { $0.key == draft.key } }
    }

    /// Returns the writes that wait, in order, including the ones that are not loaded yet.
    func unsent() async -> [OutboxItem] {
        let stored = isStarted ? [] : await stored()
        return stored + items.filter { item in !stored.contains { $0.key == item.key } }
    }

    /// Returns the stored writes in order.
    func stored() async -> [OutboxItem] {
        let keys = (try? await storage.keys(beginningWith: prefix)) ?? []
        var items: [OutboxItem] = []
        for key in keys {
            guard let data = try? await storage.get(key),
                let item = try? JSONDecoder().decode(OutboxItem.self, from: data)
            else { continue }
            items.append(item)
        }
        return items
    }

    func connection(isLive: Bool) {
        state.withLock { $0.isLive = isLive }
        receive(.connection(isLive: isLive))
    }

    /// Queues a write in the order of the calls. Calls `done` once.
    func put(
        _ method: String, _ path: String, _ body: JSON?, key: String, headers: [String: String] = [:],
        done: @escaping Done
    ) throws(UnusableWrite) {
        guard (1...255).contains(key.utf8.count), key.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw UnusableWrite(description: "a key must be 1 to 255 visible characters without spaces")
        }
        guard path.hasPrefix("/") else {
            throw UnusableWrite(description: "a path must begin with /, unlike “\(path)”")
        }
        guard (body?.data.count ?? 0) <= Outbox.bodyBytesMax else {
            throw UnusableWrite(description: "a body must have at most \(Outbox.bodyBytesMax) bytes")
        }
        let now = clock.now()
        let request = Request(method: method, path: path, body: body)
        var isInUse = false
        let refusal: UnsentWrite.Reason? = state.withLock { state in
            if state.isClosed { return .signedOut }
            if let waiting = state.pending[key] {
                isInUse = waiting.request != request
                if !isInUse { state.pending[key]?.done.append(done) }
                return nil
            }
            guard state.pending.count < Outbox.pendingMax else { return .full }
            state.pending[key] = Pending(request: request, done: [done])
            // While a stream is open the write is sent at once, so the same storage operation already notes the try.
            state.toStore.append(
                Draft(
                    key: key, request: request, headers: headers.isEmpty ? nil : headers,
                    tried: state.isLive ? now : nil))
            return nil
        }
        if isInUse { throw UnusableWrite(description: "the key “\(key)” is already in use") }
        if let refusal { return done(.failure(UnsentWrite(reason: refusal, key: key))) }
        publishCount()
        storeNext()
    }

    // MARK: Storing

    /// Stores the next write before it is sent. One at a time, so that the order is kept.
    private func storeNext() {
        let isIdle = state.withLock { state in
            guard state.isStarted, !state.isStoring, !state.toStore.isEmpty else { return false }
            state.isStoring = true
            return true
        }
        guard isIdle else { return }
        storing {
            while let item = self.nextToStore() {
                await self.store(item)
                self.receive(.add(item), isStored: true)
            }
        }
    }

    private func nextToStore() -> OutboxItem? {
        state.withLock { state in
            guard let draft = state.toStore.first, !state.isClosed else {
                state.isStoring = false
                return nil
            }
            state.order = max(state.order + 1, clock.now() * 1000)
            // A text that sorts in the order of the numbers.
            let text = String(state.order, radix: 36)
            let order = String(repeating: "0", count: max(0, 13 - text.count)) + text
            return draft.item("\(order)-\(tag)", identity)
        }
    }

    /// Tracks a running store, so that a deletion can wait for it.
    private func storing(_ store: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            let (before, task) = (state.storing, Task { await store() })
            state.storing = Task {
                await before?.value
                await task.value
            }
        }
    }

    /// Stores a write. A write that the storage refuses waits in memory, is sent nevertheless, and is stored later.
    private func store(_ item: OutboxItem) async {
        do {
            try await storage.set(prefix + item.order, JSONEncoder().encode(item))
            state.withLock { _ = $0.unstored.remove(item.key) }
        } catch {
            state.withLock { state in
                guard !state.isClosed else { return }
                state.unstored.insert(item.key)
                let at = clock.now() + Outbox.storeAgainMilliseconds
                state.timers.set("store", at: at, clock) { [weak self] number in self?.storeAgain(number) }
            }
        }
    }

    /// Stores the writes that the storage has refused and that still wait.
    private func storeAgain(_ number: Int) {
        let refused = state.withLock { state in
            state.timers.take("store", number) ? state.machine.items.filter { state.unstored.contains($0.key) } : []
        }
        for item in refused {
            storing {
                await self.store(item)
                // It may have been answered meanwhile.
                guard !self.items.contains(where: { $0.key == item.key }) else { return }
                try? await self.storage.remove(self.prefix + item.order)
            }
        }
    }

    // MARK: The machine

    private func receive(_ input: OutboxMachine.Input, isStored: Bool = false) {
        let now = clock.now()
        let random = clock.random()
        let actions = state.withLock { state in
            if isStored { state.toStore.removeFirst() }
            guard !state.isClosed else { return [OutboxMachine.Action]() }
            let actions = state.machine.receive(input, now: now, random: random)
            for case .timer(let name, let at) in actions {
                state.timers.set(name, at: at, clock) { [weak self] number in self?.fire(name, number) }
            }
            for case .remove(let item) in actions { state.doneKeys = state.doneKeys.suffix(999) + [item.key] }
            return actions
        }
        for action in actions { perform(action) }
        publishCount()
    }

    private func fire(_ name: String, _ number: Int) {
        guard state.withLock({ $0.timers.take(name, number) }) else { return }
        receive(.timer)
    }

    private func publishCount() {
        let (tell, count) = state.withLock { ($0.events.waiting, $0.machine.items.count + $0.toStore.count) }
        tell(count)
    }

    private func perform(_ action: OutboxMachine.Action) {
        switch action {
        case .timer: break
        case .mark(let item):
            storing {
                await self.store(item)
                self.receive(.marked(item))
            }
        case .request(let item): Task { await request(item) }
        case .remove(let item): Task { [storage, prefix] in try? await storage.remove(prefix + item.order) }
        case .answered(let item, let outcome): answered(item, outcome)
        }
    }

    private func request(_ item: OutboxItem) async {
        let headers = (item.headers ?? [:]).merging(["Idempotency-Key": item.key]) { _, own in own }
        let answer = await client.attempt(item.method, item.path, item.body, headers: headers)
        let outcome = OutboxMachine.Outcome(status: answer.status, headers: answer.headers, body: answer.json)
        receive(.answer(key: item.key, outcome, retryAfterMilliseconds: answer.waitMilliseconds(clock)))
    }

    private func answered(_ item: OutboxItem, _ outcome: OutboxMachine.Outcome) {
        let (waiting, events) = state.withLock { state in
            (state.pending.removeValue(forKey: item.key)?.done ?? [], state.events)
        }
        guard outcome.status != 0 else {
            let reason = Refusal(outcome.body).code.flatMap(UnsentWrite.Reason.init) ?? .full
            let failure = UnsentWrite(reason: reason, key: item.key)
            for done in waiting { done(.failure(failure)) }
            return events.answered(Answered(item: item, answer: nil, failure: failure))
        }
        let body = outcome.body.isNull ? Data() : outcome.body.data
        let answer = ServiceAnswer(status: outcome.status, headers: outcome.headers, body: body)
        for done in waiting { done(.success(answer)) }
        events.answered(Answered(item: item, answer: answer, failure: nil))
    }
}

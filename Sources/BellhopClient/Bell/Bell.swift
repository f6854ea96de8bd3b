import Foundation

/// One user's connection to a service: a stream, the calls, an outbox, and the feature stores, which keep themselves up
/// to date.
///
/// ```swift
/// let bell = Bell(url: "https://bells.example", token: .init { try await session.token() })
/// for await badges in bell.badges.updates { show(badges) }
/// ```
///
/// It handles a restart of the service, an expiring token and a device without a network by itself:
/// <doc:WhenThingsGoWrong>. The bell belongs to the main actor, so that views can read it directly; it does its waiting
/// off the main actor.
///
/// Close a bell that is no longer needed (``close()``).
@MainActor public final class Bell {
    public typealias Connection = BellhopStream.Connection

    /// Events buffered for one reader. A slower reader loses the oldest events and receives a `stream:resync`. Without
    /// this limit, it would fill the memory.
    private static let eventsMax = 1000
    /// Minimum time between two identifications because of a stream of another identity.
    private static let otherStreamMilliseconds = 60_000
    public private(set) var connection = Connection(status: .connecting)
    /// Number of writes that wait to be sent.
    public private(set) var waitingWrites = 0
    public private(set) var user: String?
    /// Makes calls as the signed-in user, with the bell's own token.
    public let client: BellhopClient

    let clock: ClientClock
    let options: Options
    let storage: WatchedStorage
    private let provider: BellhopClient.TokenProvider
    let current = CurrentTokens()
    /// The identities of the app's last tokens.
    let named = KnownClaims()
    private(set) var session = 0
    private(set) var isSignedIn = false
    private var isFirst = true
    private(set) var isClosed = false
    var line: StreamRunner?
    var outbox: Outbox?
    /// Writes that were made before the user's identity was known.
    var early: [EarlyWrite] = []
    private var lastStreamID = ""
    /// When the service last opened a stream of another identity than it had named.
    private var otherStreamAt = Int.min / 2
    var keeper: CursorKeeper?
    /// Decides whose stores are open.
    var selves = SessionMachine()
    /// The identity whose stores are open; nil until it is known.
    var identity: String? { selves.identity }
    /// Nil until the identity is known.
    var lastState: LastState?
    /// The running write of the identity that the device knows.
    var knowing: Task<Void, Never>?
    /// The last change of what the device keeps of a former user. The next start reads the storage after it.
    var keeping: Task<Void, Never>?
    var reconciliation: ReconciliationMachine
    var isPolling = false
    var timers = Timers()
    var stores: [ObjectIdentifier: any BellStore] = [:]
    var subscriptions = CombinedSubscriptions()
    private var watching: [CancellingTask] = []
    var reading: CancellingTask?
    /// The last change of the stream's subscriptions.
    var subscribing: Task<Void, Never>?
    private var listeners: [Int: AsyncStream<Event>.Continuation] = [:]
    private var filters: [Int: Set<String>] = [:]
    /// Readers that have lost events.
    private var lossy: Set<Int> = []
    private static let gap = Event(name: "stream:resync", data: ["reason": "gap"], id: "")
    /// The app's subscriptions to topics, with the callbacks for refusals.
    var refusalListeners: [ObjectIdentifier: (topics: [String], listener: RefusalListener)] = [:]
    private var connectionListeners: [Int: AsyncStream<Connection>.Continuation] = [:]
    private var count = 0
    var played = PlayedKeys()
    /// The id of this device, once it is needed.
    var device: Task<String, Never>?
    /// The last call that registers the device, or removes it.
    var registering: Promise<Result<ServiceAnswer, any Error>>?
    /// The last change of the device's screen.
    var showing: Task<Void, Never>?
    var features = Features()

    /// - Parameters:
    ///   - url: The scheme, host and port, such as `https://bells.example`.
    ///   - token: Called when a token is needed, before it expires, and once if it is refused.
    public init(url: String, token: BellhopClient.TokenProvider, options: Options = Options()) {
        self.options = options
        clock = options.clock
        provider = token
        storage = WatchedStorage(options.storage)
        let current = current
        client = BellhopClient(
            baseURL: url,
            token: BellhopClient.TokenProvider(isFixed: token.isFixed) { try await current.get($0) })
        reconciliation = ReconciliationMachine(isForeground: options.lifecycle.isForeground)
        subscriptions.set(ObjectIdentifier(self), topics: options.topics)
        watch()
        signIn()
    }

    private func watch() {
        storage.observe { [weak self] reason in
            Task { @MainActor in
                self?.publish(
                    reason == nil ? "storage:restored" : "storage:failed",
                    reason.map { ["code": "storage.failed", "detail": .string($0)] } ?? [:])
            }
        }
        let network = options.network.changes()
        let lifecycle = options.lifecycle.changes()
        watching = [
            CancellingTask(Task { [weak self] in for await state in network { self?.network(state) } }),
            CancellingTask(
                Task { [weak self] in for await isForeground in lifecycle { self?.lifecycle(isForeground) } }),
        ]
    }

    // MARK: Signing in

    /// Notes the user of the token, unless the app has named the user.
    func noteUser(_ known: String?) { user = user ?? known }

    /// Signs a user in. The previous user's state is removed before any of the new user's state is shown.
    public func signIn(_ name: String? = nil) { signIn(name, as: nil) }

    /// - Parameter identity: The identity that the service has named for the app's token; nil if unknown.
    private func signIn(_ name: String?, as identity: String?) {
        guard !isClosed else { return }
        let user = name ?? options.user
        leave(user)
        isSignedIn = true
        let (session, client) = (session, client)
        let tokens = Tokens(
            provider, clock: clock, user: user, identity: identity, identities: named,
            identify: { await client.with(token: $0).attempt("GET", "/v1/me") },
            onUser: { [weak self] other, identity in
                // The app returned a token of another identity without signing in: one user must not see another user's
                // state, nor write with other rights.
                Task { @MainActor in
                    if let self, session == self.session { self.signIn(other, as: identity) }
                }
            })
        current.set(tokens)
        show(Connection(status: .connecting))
        if !isFirst { input(.user(user, isSignedIn: true)) }
        if !isFirst { pollReceive(.user) }
        isFirst = false
        Task { [weak self] in await self?.begin(tokens, session) }
    }

    /// Closes the bell for good; it cannot be reopened.
    public func close() {
        leave(nil)
        isClosed = true
        show(Connection(status: .closed))
        watching = []
        timers.stopAll()
        for store in stores.values.map(\.self) { store.close() }
        for listener in listeners.values { listener.finish() }
        for listener in connectionListeners.values { listener.finish() }
    }

    func leave(_ next: String?) {
        isSignedIn = false
        session += 1
        if let line { Task { await line.close() } }
        outbox?.close()
        let flushing = lastState?.flush()
        keeping = Task { [keeping, keeper, knowing] in
            await keeping?.value
            await knowing?.value
            await flushing?.value
            await keeper?.end()
        }
        current.set(nil)
        (line, reading, outbox, keeper, lastStreamID, user, waitingWrites) = (nil, nil, nil, nil, "", next, 0)
        lastState = nil
        _ = selves.receive(.user)
        // These writes no longer have a user: each is answered with "signed out".
        if !early.isEmpty {
            let ownerless = Outbox(client: client, storage: MemoryStorage(), name: "")
            ownerless.close()
            for write in early { write.put(into: ownerless) }
            early = []
        }
    }

    func makeOutbox(_ caller: BellhopClient, _ identity: String, _ session: Int) -> Outbox {
        let events = Outbox.Events(
            answered: { answered in Task { @MainActor [weak self] in self?.noteAnswer(answered, session) } },
            waiting: { _ in Task { @MainActor [weak self] in self?.noteWaiting(session) } })
        return Outbox(
            client: caller, storage: storage, prefix: outboxPrefix(of: identity), identity: identity,
            isOnline: options.network.isOnline, clock: clock, events: events)
    }

    // MARK: Events

    /// Returns the events from now on.
    ///
    /// A reader that is more than 1,000 events behind loses the oldest. It then receives a `stream:resync` with the
    /// reason `gap`, even if `names` lacks it, and must fetch its data again.
    ///
    /// - Parameter names: The events to return; all events if empty.
    public func events(_ names: String...) -> AsyncStream<Event> {
        let filter = Set(names)
        let (all, continuation) = AsyncStream<Event>.makeStream(bufferingPolicy: .bufferingNewest(Bell.eventsMax))
        let key = listen(continuation)
        continuation.onTermination = { _ in
            Task { @MainActor [weak self] in
                self?.listeners[key] = nil
                self?.filters[key] = nil
                self?.lossy.remove(key)
            }
        }
        filters[key] = filter
        return all
    }

    private func listen(_ continuation: AsyncStream<Event>.Continuation) -> Int {
        count += 1
        listeners[count] = continuation
        if isClosed { continuation.finish() }
        return count
    }

    /// The current connection, then each change of it.
    public var connectionUpdates: AsyncStream<Connection> {
        let (all, continuation) = AsyncStream<Connection>.makeStream(bufferingPolicy: .bufferingNewest(1))
        count += 1
        let key = count
        connectionListeners[key] = continuation
        continuation.onTermination = { _ in
            Task { @MainActor [weak self] in self?.connectionListeners.removeValue(forKey: key) }
        }
        continuation.yield(connection)
        if isClosed { continuation.finish() }
        return all
    }

    func handle(_ delivery: StreamRunner.Delivery, _ session: Int) {
        guard session == self.session else { return }
        switch delivery {
        case .event(let event):
            let data = event.json
            let id = event.isReplayed ? event.id : ""
            let whole = FeatureEvent(event.name, data, id: id)
            for (key, store) in stores.map(\.self) {
                guard let seen = subscriptions.seen(by: key, event.name, data) else { continue }
                store.take(.event(seen == data ? whole : FeatureEvent(event.name, seen, id: id)))
            }
            if let seen = subscriptions.seen(by: nil, event.name, data) {
                yield(Event(name: event.name, data: seen, id: id))
            }
            keeper?.keep(event.id)
        case .connection(let connection):
            guard connection.reason?.code != "stream.other" || !hasOtherStream() else { return signIn(user) }
            note(connection)
        case .cursor(let id): keeper?.keep(id)
        case .tables(let answer): for (deliver, own) in subscriptions.takeAnswers(answer) { deliver(own) }
        }
    }

    /// Notes that the service opened a stream of another identity than it had named, so that the tokens are identified
    /// again. Returns false if that has just been done.
    private func hasOtherStream() -> Bool {
        let now = clock.now()
        guard now - otherStreamAt > Bell.otherStreamMilliseconds else { return false }
        otherStreamAt = now
        named.clear()
        return true
    }

    func yield(_ event: Event) {
        for (key, listener) in listeners {
            let filter = filters[key] ?? []
            guard filter.isEmpty || filter.contains(event.name) else { continue }
            switch listener.yield(event) {
            case .dropped:
                // Sent once, until the reader has caught up.
                if lossy.insert(key).inserted { listener.yield(Bell.gap) }
            case .enqueued(let room) where room > Bell.eventsMax / 2: lossy.remove(key)
            default: break
            }
        }
    }

    private func note(_ next: Connection) {
        let before = connection
        defer { reportRefusals(since: before) }
        show(next)
        let isNew = next.streamID != nil && next.streamID != lastStreamID
        let isReconnected = next.status == .live && isNew && !lastStreamID.isEmpty
        if next.status == .live { lastStreamID = next.streamID ?? "" }
        guard next.status != before.status || isReconnected else { return }
        let isLive = next.status == .live
        if isLive != (before.status == .live) { outbox?.connection(isLive: isLive) }
        input(.connection(isLive: isLive))
        pollReceive(.connection(isLive: isLive, isReconnected: isReconnected))
    }

    func show(_ next: Connection) {
        guard next != connection else { return }
        connection = next
        for listener in connectionListeners.values { listener.yield(next) }
    }

    private func noteAnswer(_ answered: Outbox.Answered, _ session: Int) {
        guard session == self.session else { return }
        let (item, answer) = (answered.item, answered.answer)
        let isSent = answer?.isSuccess ?? false
        let problem: JSON = answer?.json ?? ["code": .string(answered.failure?.reason.rawValue ?? "")]
        let data: JSON = [
            "key": .string(item.key), "method": .string(item.method), "path": .string(item.path),
            "body": item.body ?? .null,
            "answer": ["status": .integer(Int64(answer?.status ?? 0)), "body": problem],
        ]
        // Stores that show the write of an earlier start learn its result.
        input(
            .answer(
                as: item.answerName, status: answer?.status ?? 0, body: problem,
                retryAfterSeconds: nil))
        publish(isSent ? "outbox:sent" : "outbox:refused", data)
    }

    private func noteWaiting(_ session: Int) {
        guard session == self.session else { return }
        waitingWrites = outbox?.waitingCount ?? 0
    }

    private func network(_ state: NetworkState) {
        outbox?.network(isOnline: state.isOnline)
        guard let line else { return }
        Task { await line.network(state) }
    }

    private func lifecycle(_ isForeground: Bool) {
        if let line { Task { await line.lifecycle(isForeground: isForeground) } }
        input(.lifecycle(isForeground: isForeground))
        // The system may end an app in the background at any time.
        if !isForeground { _ = lastState?.flush() }
        pollReceive(.lifecycle(isForeground: isForeground))
    }

    func input(_ input: BellInput) {
        for store in stores.values.map(\.self) { store.take(input) }
    }

    // MARK: Commands of the app

    /// Retries refused and unreachable connections immediately.
    public func retry() {
        guard let line else { return }
        Task { await line.open() }
    }

    /// Reports that the app shows another of its screens: outdated counts are fetched (R-CNT-RECON-2).
    public func showsAnotherScreen() { pollReceive(.tabSwitch) }

    /// Fetches the counts, however recent they are.
    public func reconcile() {
        poll()
        pollReceive(.force)
    }

    /// Sends a write once and in order, now or when the network allows. A later process of the app may send it.
    ///
    /// - Parameter key: an `Idempotency-Key` chosen by the app.
    public func send(
        _ method: String, _ path: String, _ body: JSON? = nil, key: String? = nil, headers: [String: String] = [:]
    ) async throws -> ServiceAnswer {
        let promise = Promise<Result<ServiceAnswer, any Error>>()
        deliver(
            EarlyWrite(method: method, path: path, body: body, key: key ?? EarlyWrite.newKey, headers: headers) {
                promise.fulfil($0)
            })
        return try await promise.value.get()
    }

    /// Sends a write as above, with a model as its body.
    public func send(_ method: String, _ path: String, model: some Encodable, key: String? = nil) async throws
        -> ServiceAnswer
    {
        try await send(method, path, try JSON(parsing: Bellhop.encoder.encode(model)), key: key)
    }
}

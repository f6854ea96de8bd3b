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

    public private(set) var connection = Connection(status: .connecting)
    /// Number of writes that wait to be sent.
    public private(set) var waitingWrites = 0
    public private(set) var user: String?
    /// Makes calls as the signed-in user, with the bell's own token.
    public let client: BellhopClient

    let clock: ClientClock
    let options: Options
    private let provider: BellhopClient.TokenProvider
    private let current = CurrentTokens()
    private var session = 0
    private var isSignedIn = false
    private var isFirst = true
    private var isClosed = false
    private var line: StreamRunner?
    private var outbox: Outbox?
    /// Writes that were made before the user's identity was known.
    private var early: [(Outbox) -> Void] = []
    private var lastStreamID = ""
    private var keeper: CursorKeeper?
    private var reconciliation: ReconciliationMachine
    private var isPolling = false
    private var timers = Timers()
    private(set) var stores: [ObjectIdentifier: any BellStore] = [:]
    var subscriptions = CombinedSubscriptions()
    private var watching: [CancellingTask] = []
    private var reading: CancellingTask?
    /// The last change of the stream's subscriptions.
    private var wanting: Task<Void, Never>?
    private var listeners: [Int: AsyncStream<Event>.Continuation] = [:]
    private var filters: [Int: Set<String>] = [:]
    /// Readers that have lost events.
    private var lossy: Set<Int> = []
    private static let gap = Event(name: "stream:resync", data: ["reason": "gap"], id: "")
    /// The app's subscriptions to topics, with the callbacks for refusals.
    var refusalListeners: [ObjectIdentifier: (topics: [String], tell: RefusalListener)] = [:]
    private var connectionListeners: [Int: AsyncStream<Connection>.Continuation] = [:]
    private var count = 0
    private var played = PlayedKeys()
    var features = Features()

    /// - Parameters:
    ///   - url: The scheme, host and port, such as `https://bells.example`.
    ///   - token: Called when a token is needed, before it expires, and once if it is refused.
    public init(url: String, token: BellhopClient.TokenProvider, options: Options = Options()) {
        self.options = options
        clock = options.clock
        provider = token
        let current = current
        client = BellhopClient(
            baseURL: url,
            token: BellhopClient.TokenProvider(isFixed: token.isFixed) { await current.get(spent: $0) })
        reconciliation = ReconciliationMachine(isForeground: options.lifecycle.isForeground)
        subscriptions.set(ObjectIdentifier(self), topics: options.topics)
        watch()
        signIn()
    }

    private func watch() {
        let network = options.network.changes()
        let lifecycle = options.lifecycle.changes()
        watching = [
            CancellingTask(Task { [weak self] in for await state in network { self?.network(state) } }),
            CancellingTask(
                Task { [weak self] in for await isForeground in lifecycle { self?.lifecycle(isForeground) } }),
        ]
    }

    // MARK: Signing in

    /// Signs a user in. The previous user's state is removed before any of the new user's state is shown.
    public func signIn(_ name: String? = nil) {
        guard !isClosed else { return }
        let user = name ?? options.user
        leave(user)
        isSignedIn = true
        let tokens = Tokens(provider, clock: clock, user: user) { other in
            // The app returned a token of another identity without signing in: one user must not see another user's
            // state.
            Task { @MainActor [weak self] in self?.signIn(other) }
        }
        current.set(tokens)
        show(Connection(status: .connecting))
        if !isFirst { input(.user(user, isSignedIn: true)) }
        if !isFirst { pollReceive(.user) }
        isFirst = false
        let session = session
        Task { [weak self] in await self?.begin(tokens, session) }
    }

    /// Signs the user out: empties the stores and deletes the user's stored state.
    ///
    /// Unsent writes are deleted from the storage, and the task returns them in order. A write whose
    /// ``OutboxItem/tried`` is not nil may have been executed.
    @discardableResult public func signOut() -> Task<[OutboxItem], Never> {
        let (outbox, last, storage) = (outbox, user.map(identityKey), options.storage)
        let unsent = Task {
            let items = await outbox?.forget() ?? []
            if let last { try? await storage.remove(last) }
            return items
        }
        leave(nil)
        show(Connection(status: .closed, reason: .init(code: "signed_out")))
        input(.user(nil, isSignedIn: false))
        pollReceive(.user)
        return unsent
    }

    private func identityKey(_ user: String) -> String { "bellhop user \(client.baseURL) \(user)" }

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

    private func leave(_ next: String?) {
        isSignedIn = false
        session += 1
        if let line { Task { await line.close() } }
        outbox?.close()
        current.set(nil)
        (line, reading, outbox, keeper, lastStreamID, user, waitingWrites) = (nil, nil, nil, nil, "", next, 0)
        // These writes no longer have a user: each is answered with "signed out".
        if !early.isEmpty {
            let ownerless = Outbox(client: client, storage: MemoryStorage(), name: "")
            ownerless.close()
            for write in early { write(ownerless) }
            early = []
        }
    }

    private func begin(_ tokens: Tokens, _ session: Int) async {
        // The identity is part of the storage keys.
        let identity = await identify(tokens, session)
        guard session == self.session else { return }
        // The state of an unknown identity is not stored: the next identity could be another user.
        let storage = identity == nil ? MemoryStorage() : options.storage
        let scope = "bellhop 2 \(client.baseURL) \(identity.map(StorageName.short) ?? "") "
        // A write is only sent as the user that made it, however late.
        let caller = client.with(tokens.caller)
        let outbox = makeOutbox(caller, storage, scope, identity, session)
        self.outbox = outbox
        for write in early { write(outbox) }
        early = []
        // The outbox starts first: a restart must not lose it.
        Task { await outbox.start() }
        let keeper = CursorKeeper(storage, key: "\(scope)cursor")
        let cursor = await keeper.load()
        guard session == self.session else { return }
        self.keeper = keeper
        var own = StreamRunner.Options()
        own.topics = subscriptions.topics
        own.lastEventID = cursor
        own.limits = options.limits
        own.user = user
        own.identity = identity
        own.isOnline = options.network.isOnline
        own.isForeground = options.lifecycle.isForeground
        let line = StreamRunner(client: caller, tokens: tokens, clock: clock, options: own)
        self.line = line
        changed(topics: true, tables: true)
        let wanted = wanting
        reading = CancellingTask(
            Task { [weak self] in
                await wanted?.value
                await line.open()
                while let delivery = await line.next() { self?.handle(delivery, session) }
            })
    }

    /// Returns the claims that decide what the tokens may do, or nil for a token that carries none.
    ///
    /// If the app named the user and has no token, returns that user's last known identity.
    private func identify(_ tokens: Tokens, _ session: Int) async -> String? {
        while session == self.session {
            if await tokens.get() != nil { break }
            if let user, let data = try? await options.storage.get(identityKey(user)) {
                let identity = String(decoding: data, as: UTF8.self)
                tokens.expect(identity)
                return identity
            }
            guard session == self.session else { return nil }
            show(Connection(status: .waiting, reason: tokens.problem))
            try? await clock.sleep(clock.now() + 10_000)
        }
        guard session == self.session else { return nil }
        user = user ?? tokens.user
        let identity = tokens.identity ?? user
        if let user, let identity { try? await options.storage.set(identityKey(user), Data(identity.utf8)) }
        return identity
    }

    private func makeOutbox(
        _ caller: BellhopClient, _ storage: any ClientStorage, _ scope: String, _ identity: String?, _ session: Int
    ) -> Outbox {
        let events = Outbox.Events(
            answered: { answered in Task { @MainActor [weak self] in self?.noteAnswer(answered, session) } },
            waiting: { _ in Task { @MainActor [weak self] in self?.noteWaiting(session) } })
        return Outbox(
            client: caller, storage: storage, prefix: "\(scope)outbox/", identity: identity,
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
        let wanted = Set(names)
        let (all, continuation) = AsyncStream<Event>.makeStream(bufferingPolicy: .bufferingNewest(Bell.eventsMax))
        let key = listen(continuation)
        continuation.onTermination = { _ in
            Task { @MainActor [weak self] in
                self?.listeners[key] = nil
                self?.filters[key] = nil
                self?.lossy.remove(key)
            }
        }
        filters[key] = wanted
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

    private func handle(_ delivery: StreamRunner.Delivery, _ session: Int) {
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
        case .connection(let connection): note(connection)
        case .cursor(let id): keeper?.keep(id)
        case .tables(let answer): for (tell, own) in subscriptions.takeAnswers(answer) { tell(own) }
        }
    }

    func yield(_ event: Event) {
        for (key, listener) in listeners {
            let wanted = filters[key] ?? []
            guard wanted.isEmpty || wanted.contains(event.name) else { continue }
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

    private func show(_ next: Connection) {
        guard next != connection else { return }
        connection = next
        for listener in connectionListeners.values { listener.yield(next) }
    }

    private func noteAnswer(_ answered: Outbox.Answered, _ session: Int) {
        guard session == self.session else { return }
        let (item, answer) = (answered.item, answered.answer)
        let isSent = answer?.isSuccess ?? false
        let problem: JSON = answer?.json ?? ["code": .string(answered.failure?.reason.rawValue ?? "")]
        let told: JSON = [
            "key": .string(item.key), "method": .string(item.method), "path": .string(item.path),
            "body": item.body ?? .null,
            "answer": ["status": .integer(Int64(answer?.status ?? 0)), "body": problem],
        ]
        tell(isSent ? "outbox:sent" : "outbox:refused", told)
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
        pollReceive(.lifecycle(isForeground: isForeground))
    }

    private func input(_ input: FeatureInput) {
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
        deliver(method, path, body, key: key, headers: headers) { promise.fulfil($0) }
        return try await promise.value.get()
    }

    /// Sends a write as above, with a model as its body.
    public func send(_ method: String, _ path: String, model: some Encodable, key: String? = nil) async throws
        -> ServiceAnswer
    {
        try await send(method, path, try JSON(parsing: Bellhop.encoder.encode(model)), key: key)
    }

    // MARK: Used by the stores

    func attach(_ store: some BellStore) { stores[ObjectIdentifier(store)] = store }

    func detach(_ store: some BellStore) {
        let key = ObjectIdentifier(store)
        stores[key] = nil
        let (isChange, unanswered) = subscriptions.remove(key)
        CombinedSubscriptions.supersede(unanswered)
        if isChange { changed(topics: true, tables: true) }
    }

    func want(_ store: some BellStore, topics: [String]) {
        subscriptions.set(ObjectIdentifier(store), topics: topics)
        changed(topics: true)
    }

    func want(
        _ store: some BellStore, tables: [JSON], lastEventId: String?,
        answer: @escaping @MainActor (ServiceAnswer) -> Void
    ) {
        CombinedSubscriptions.supersede(subscriptions.set(ObjectIdentifier(store), tables: tables, answer: answer))
        changed(tables: true, lastEventId: lastEventId)
    }

    func changed(topics: Bool = false, tables: Bool = false, lastEventId: String? = nil) {
        guard let line else { return }
        let (wantedTopics, wantedTables) = (topics ? subscriptions.topics : nil, tables ? subscriptions.tables : nil)
        // Changes run one after the other; otherwise an older one could win.
        let before = wanting
        wanting = Task {
            await before?.value
            await line.want(topics: wantedTopics, tables: wantedTables, lastEventId: lastEventId)
        }
    }

    func deliver(
        _ method: String, _ path: String, _ body: JSON?, key: String? = nil, headers: [String: String] = [:],
        done: @escaping @Sendable (Result<ServiceAnswer, any Error>) -> Void
    ) {
        let key = key ?? UUID().uuidString.lowercased()
        let put: (Outbox) -> Void = { outbox in
            do {
                try outbox.put(method, path, body, key: key, headers: headers) { done($0.mapError { $0 }) }
            } catch {
                done(.failure(error))
            }
        }
        if let outbox {
            put(outbox)
        } else if !isSignedIn {
            done(.failure(UnsentWrite(reason: .signedOut, key: key)))
        } else if early.count >= 1000 {
            done(.failure(UnsentWrite(reason: .full, key: key)))
        } else {
            early.append(put)
        }
    }

    /// Delivers an event to the app and to the stores that subscribe to it.
    func tell(_ name: String, _ data: JSON) {
        let event = FeatureEvent(name, data)
        for store in stores.values.map(\.self) where store.localEvents.contains(name) { store.take(.event(event)) }
        yield(Event(name: name, data: data, id: ""))
    }

    func play(_ haptic: Bellhop.Haptic?, _ sound: Bool, _ key: String) {
        guard let player = options.player, let left = played.take(key, haptic: haptic != nil, sound: sound)
        else { return }
        Task { await player.play(haptic: left.haptic ? haptic : nil, sound: left.sound) }
    }

    // MARK: Reconciliation

    /// Starts polling the counts beside the stream. An app that shows no counts does not poll.
    func poll() {
        guard !isPolling else { return }
        isPolling = true
        pollReceive(.connection(isLive: connection.status == .live, isReconnected: false))
        pollReceive(.lifecycle(isForeground: options.lifecycle.isForeground))
        pollReceive(.start)
    }

    private func pollReceive(_ input: ReconciliationMachine.Input) {
        guard !isClosed, isPolling else { return }
        for action in reconciliation.receive(input, now: clock.now()) {
            switch action {
            case .timer(let name, let at):
                timers.set(name, at: at, clock) { [weak self] number in await self?.pollTimer(name, number) }
            case .fetch(let path, let headers, let asked): ask(path, headers, asked)
            case .reconciled(let status, let body):
                self.input(.answer(as: "reconcile", status: status, body: body, retryAfterSeconds: nil))
            }
        }
    }

    private func pollTimer(_ name: String, _ number: Int) {
        if timers.take(name, number) { pollReceive(.timer) }
    }

    private func ask(_ path: String, _ headers: [String: String], _ asked: Int) {
        // Without a signed-in user there are no counts.
        guard isSignedIn else { return pollReceive(.answer(asked: asked, status: 0)) }
        let session = session
        Task { [weak self, client] in
            let answer = await client.attempt("GET", path, headers: headers)
            guard let self, session == self.session else { return }
            pollReceive(
                .answer(
                    asked: asked, status: answer.status, etag: answer[header: "ETag"], body: answer.json,
                    retryAfterMilliseconds: answer.waitMilliseconds(clock)))
        }
    }
}

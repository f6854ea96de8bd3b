import Database
import MicroHTTP
import Realtime
import Rows
import Threads
import Values

/// Requests about streams on any replica. Streams of this process are asked directly. Streams of another replica are
/// asked through events of the log that reach no stream. So every replica can answer every request, and only the
/// database connects them.
struct ReplicaRequests: StreamRequests {
    static let asked: StaticString = "bellhop:asked"
    private static let answered: StaticString = "bellhop:answered"
    private static let sent: StaticString = "bellhop:sent"

    /// The queue of requests and answers between replicas, from the router, which must not block, to the thread that
    /// handles them.
    final class Mailbox: Sendable {
        fileprivate let events = Locked([StreamEvent]())
        fileprivate let thread = LoopThread("replicas")

        /// The handlers with which the router adds to this queue, by event name.
        var receivers: [String: @Sendable (StreamEvent) -> Void] {
            let names = [ReplicaRequests.asked, ReplicaRequests.answered, ReplicaRequests.sent].map(\.description)
            return Dictionary(uniqueKeysWithValues: names.map { ($0, { @Sendable in self.put($0) }) })
        }

        /// Removes and returns all queued events.
        fileprivate func takeAll() -> [StreamEvent] {
            events.withLock { events in
                defer { events = [] }
                return events
            }
        }

        /// Queues an event. An event that does not fit is lost, and its requester receives the failure that no replica
        /// answered.
        private func put(_ event: StreamEvent) {
            events.withLock { if $0.count < mailboxMax { $0.append(event) } }
            thread.wake()
        }
    }

    /// Events of replicas that wait here. If there are more, the database is slower than the replicas' requests.
    private static let mailboxMax = 10_000
    /// Requests that wait for another replica. More would come from a client that asks in a loop.
    private static let waitingMax = 1000
    /// A replica that has not answered within this time is gone, and its streams with it.
    static let patience: Duration = .seconds(3)
    /// The time within which another replica may execute a relayed request. It ends before the caller gets the failure
    /// that no replica answered, even if the two clocks differ by half a second. Otherwise a request that was reported
    /// as failed could undo a later request that succeeded.
    private static let lifetimeSeconds: Int64 = 2
    /// The interval between checks for requests whose time is over.
    private static let pause: Duration = .seconds(1)

    private struct Waiting {
        let answer: StreamRequest.Completion
        /// By `uptime`.
        let until: Duration
    }

    /// Stores an event for the other replicas, and reports the outcome.
    typealias Publish =
        @Sendable (
            _ name: StaticString, ID<Tenant>, _ data: [UInt8],
            _ completion: @escaping @Sendable (Result<Void, any Error>) -> Void
        ) -> Void

    let directory: StreamDirectory
    let mailbox: Mailbox
    let publish: Publish
    var uptime = Clock.system.uptime
    /// The waiting requests by id.
    private let waiting = Locked([String: Waiting]())

    private var failures: StreamFailures { directory.dependencies.failures }

    func start() {
        mailbox.thread.start {
            while mailbox.thread.wait(atMost: Self.pause) { handle() }
        }
    }

    func stop() { mailbox.thread.stop() }

    /// Handles the queued events, and fails the requests whose time is over.
    func handle() {
        for event in mailbox.takeAll() { receive(event) }
        expire()
    }

    /// The number of requests that wait for another replica.
    var waitingCount: Int { waiting.withLock { $0.count } }

    // MARK: Requests

    func ask(_ id: String, as asker: Caller, _ kind: StreamRequest.Kind, answer: @escaping StreamRequest.Completion) {
        if isElsewhere(id) {
            askReplicas(id, as: asker, kind, answer)
        } else {
            directory.ask(id, as: asker, kind, answer: answer)
        }
    }

    func send(_ bytes: SharedBytes, to id: String, tenant: ID<Tenant>) {
        guard isElsewhere(id) else { return directory.send(bytes, to: id, tenant: tenant) }
        let data = JSONWriter.object { writer in
            writer.member("stream", id)
            writer.member("bytes", bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
        }
        publish(Self.sent, tenant, data) { failure(of: $0) }
    }

    private func isElsewhere(_ id: String) -> Bool { StreamName(id) != nil && !directory.contains(id) }

    private func askReplicas(
        _ stream: String, as asker: Caller, _ kind: StreamRequest.Kind,
        _ answer: @escaping StreamRequest.Completion
    ) {
        let id = String(UInt64.random(in: .min ... .max), radix: 36)
        let isAdmitted = waiting.withLock { waiting in
            guard waiting.count < Self.waitingMax else { return false }
            waiting[id] = Waiting(answer: answer, until: uptime() + Self.patience)
            return true
        }
        guard isAdmitted else { return answer(.failure(Self.unanswered)) }
        let until = directory.dependencies.now.adding(seconds: Self.lifetimeSeconds)
        let data = Self.requestData(id, about: stream, as: asker, kind, until: until)
        publish(Self.asked, asker.tenant, data) { result in
            guard let error = failure(of: result) else { return }
            // If the outcome is unknown, another replica may yet execute the request.
            if (error as? DatabaseError)?.code != .undecided { settle(id, .failure(Self.unanswered)) }
        }
    }

    /// Returns the data of a request to other replicas.
    ///
    /// - Parameter until: The time until which it may be executed. A later shard refuses it.
    static func requestData(
        _ id: String, about stream: String, as asker: Caller, _ kind: StreamRequest.Kind, until: Timestamp
    ) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("id", id)
            writer.member("stream", stream)
            writer.member("until", until.microseconds)
            writer.member("asker") { Self.write(asker, to: &$0) }
            switch kind {
            case .describe: break
            case .replace(let draft):
                writer.member("wishes") { writer in
                    if let topics = draft.topics { writer.member("topics", topics) }
                    if let tables = draft.tables { writer.member("tables", tables) }
                    writer.member("lastEventId", draft.lastEventID)
                }
            case .renew(let caller): writer.member("caller") { Self.write(caller, to: &$0) }
            }
        }
    }

    /// Answers a request, unless it was answered before.
    private func settle(_ id: String, _ result: Result<StreamDescription, Failure>) {
        waiting.withLock { $0.removeValue(forKey: id) }?.answer(result)
    }

    /// Fails the requests that no replica has answered in time.
    private func expire() {
        let now = uptime()
        let late = waiting.withLock { $0.filter { $0.value.until <= now }.map(\.key) }
        for id in late { settle(id, .failure(.notFound("stream"))) }
    }

    private static let unanswered = Failure.unavailable(
        "The replica of the stream could not be reached.", code: "stream.unanswered")

    /// Records and returns the reason why an event was not stored; nil if it was.
    @discardableResult
    private func failure(of result: Result<Void, any Error>) -> (any Error)? {
        guard case .failure(let error) = result else { return nil }
        if error is StoreBusy { failures.note(.congestion) } else { failures.note(.event, error) }
        return error
    }

    // MARK: Receiving

    private func receive(_ event: StreamEvent) {
        guard case .object(let members)? = try? JSONValue(parsing: event.data) else {
            return failures.note(.event, Failure(.invalid, "event.unreadable", "\(event.name) is not a JSON object"))
        }
        switch event.name {
        case "\(Self.asked)": answerOwn(members, tenant: event.tenant)
        case "\(Self.answered)":
            guard let id = members.string("id") else { return }
            settle(id, answer(members))
        case "\(Self.sent)":
            guard let stream = members.string("stream"), let text = members.string("bytes"),
                directory.contains(stream)
            else { return }
            directory.send(SharedBytes(Array(text.utf8)), to: stream, tenant: event.tenant)
        default: return
        }
    }

    /// Answers a request about a stream of this process, and ignores others.
    private func answerOwn(_ members: [String: JSONValue], tenant: ID<Tenant>) {
        guard let id = members.string("id"), let stream = members.string("stream"), directory.contains(stream),
            let asker = Self.caller(members["asker"]),
            let until = members.integer("until").map(Timestamp.init(microseconds:))
        else { return }
        let kind: StreamRequest.Kind
        if let wanted = members.object("wishes") {
            kind = .replace(
                SubscriptionDraft(
                    topics: wanted.strings("topics"), tables: subscriptions(wanted["tables"]),
                    lastEventID: wanted.string("lastEventId")))
        } else {
            kind = Self.caller(members["caller"]).map { .renew($0) } ?? .describe
        }
        directory.ask(stream, as: asker, kind, until: until) { result in
            let data = JSONWriter.object { writer in
                writer.member("id", id)
                switch result {
                case .success(let found):
                    writer.member("topics", found.topics)
                    writer.member("addedTopics", found.addedTopics)
                    writer.member("tables", found.tables)
                    writer.member("events", found.figures.events)
                    writer.member("bytes", found.figures.bytes)
                    writer.member("waitingBytes", found.waitingBytes)
                case .failure(let failure) where failure.kind == .unavailable:
                    writer.member("unavailable", failure.code)
                    writer.member("detail", failure.detail)
                case .failure: break
                }
            }
            publish(Self.answered, tenant, data) { failure(of: $0) }
        }
    }

    private func answer(_ members: [String: JSONValue]) -> Result<StreamDescription, Failure> {
        if let code = members.string("unavailable") {
            let detail = members.string("detail") ?? ""
            return .failure(.unavailable(detail, code: code, retryAfterSeconds: Self.unavailableSeconds))
        }
        guard let topics = members.strings("topics"), let added = members.strings("addedTopics"),
            let events = members.integer("events"), let bytes = members.integer("bytes"),
            let waiting = members.integer("waitingBytes")
        else { return .failure(.notFound("stream")) }
        return .success(
            StreamDescription(
                topics: topics, addedTopics: added, tables: subscriptions(members["tables"]) ?? [],
                figures: StreamFigures(events: Int(events), bytes: Int(bytes)), waitingBytes: Int(waiting)))
    }

    /// Seconds after which to retry a replica that has no room.
    private static let unavailableSeconds = 30

    private func subscriptions(_ value: JSONValue?) -> [TableSubscription]? {
        guard case .array(let values)? = value else { return nil }
        return try? TableSubscription.list(values, at: "", columns: directory.dependencies.tables.columns)
    }

    // MARK: Callers as JSON

    private static func write(_ caller: Caller, to writer: inout JSONWriter) {
        caller.write(membersTo: &writer)
        writer.member("issuedAt", caller.issuedAt.microseconds)
        writer.member("expiresAt", caller.expiresAt.microseconds)
    }

    private static func caller(_ value: JSONValue?) -> Caller? {
        guard case .object(let members)? = value, let tenant = members.string("tenant").map({ ID<Tenant>($0) }),
            let userId = members.string("userId"), let role = members.string("role"),
            let keys = members.strings("scope"), let issuedAt = members.integer("issuedAt"),
            let expiresAt = members.integer("expiresAt"), let isService = members.bool("isService")
        else { return nil }
        return Caller(
            tenant: tenant, userId: ID(userId), role: role, isService: isService,
            capabilities: members.strings("capabilities").map { Set($0.compactMap { Capability(word: $0) }) },
            tier: members.string("tier"),
            scope: Scope(tenant: tenant, keys: Set(keys)), claims: members.strings("claims").map(Set.init),
            tokenId: members.string("tokenId"), sessionId: members.string("sessionId"),
            issuedAt: Timestamp(microseconds: issuedAt), expiresAt: Timestamp(microseconds: expiresAt))
    }
}

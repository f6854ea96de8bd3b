import Database
import Domain
import Foundation
import MicroHTTP
import Realtime

/// What replicas tell one another, as events of the log that reach no stream: revocations, and questions about a stream
/// that another replica holds. So any replica can be asked anything, and nothing but the database connects them.
///
/// `@unchecked Sendable`: `waiting` is only touched while `lock` is held.
final class ReplicaMessages: @unchecked Sendable {
    static let revoked: StaticString = "bellhop:revoked"
    private static let asked: StaticString = "bellhop:asked"
    private static let answered: StaticString = "bellhop:answered"
    private static let sent: StaticString = "bellhop:sent"

    /// Questions that wait for another replica. More would be a client that asks in a loop.
    private static let waitingMax = 1000
    /// A replica that has not answered by then is gone, and its streams with it.
    private static let patience: Duration = .seconds(3)

    private struct Question {
        let answer: @Sendable (Result<StreamDescription, Failure>) -> Void
        let until: ContinuousClock.Instant
    }

    private let directory: StreamDirectory
    private let runner: TransactionRunner
    /// What others hear, by the event's name. Must not wait.
    private let listeners: [String: @Sendable (StreamEvent) -> Void]
    /// Guards `waiting`.
    private let lock = NSLock()
    private var waiting: [String: Question] = [:]

    init(
        directory: StreamDirectory, runner: TransactionRunner,
        listeners: [String: @Sendable (StreamEvent) -> Void] = [:]
    ) {
        self.directory = directory
        self.runner = runner
        self.listeners = listeners
    }

    /// Takes committed events in their order: streams get theirs, and what replicas tell one another is done.
    func publish(_ events: [StreamEvent]) {
        var rest = events[...]
        while let first = rest.first {
            // In their order: what comes after a change of memberships is told to scopes as they are then.
            let own = rest.prefix { !$0.isInternal }
            directory.publish(own)
            rest = rest[own.endIndex...]
            guard own.isEmpty else { continue }
            receive(first)
            rest = rest.dropFirst()
        }
    }

    // MARK: Asking

    /// Asks the replica that holds a stream.
    func ask(
        _ stream: String, as asker: Caller, _ kind: StreamRequest.Kind,
        answer: @escaping @Sendable (Result<StreamDescription, Failure>) -> Void
    ) {
        let id = String(UInt64.random(in: .min ... .max), radix: 36)
        let isAdmitted = lock.withLock {
            guard waiting.count < Self.waitingMax else { return false }
            waiting[id] = Question(answer: answer, until: .now + Self.patience)
            return true
        }
        guard isAdmitted else { return answer(.failure(Self.unanswered)) }
        let data = JSONWriter.object { writer in
            writer.member("id", id)
            writer.member("stream", stream)
            writer.member("asker") { Self.write(asker, to: &$0) }
            switch kind {
            case .describe: break
            case .replace(let wishes):
                writer.member("wishes") { writer in
                    if let topics = wishes.topics { writer.member("topics", topics) }
                    if let tables = wishes.tables { writer.member("tables", tables) }
                    writer.member("lastEventId", wishes.lastEventID)
                }
            case .renew(let caller): writer.member("caller") { Self.write(caller, to: &$0) }
            }
        }
        tell(Self.asked, tenant: asker.tenant, data) { [self] in settle(id, .failure(Self.unanswered)) }
    }

    /// Answers a question, unless it was answered before.
    private func settle(_ id: String, _ result: Result<StreamDescription, Failure>) {
        lock.withLock { waiting.removeValue(forKey: id) }?.answer(result)
    }

    /// Gives up the questions that nobody has answered. Called now and then.
    func expire() {
        let now = ContinuousClock.now
        let late = lock.withLock { waiting.filter { $0.value.until <= now }.map(\.key) }
        for id in late { settle(id, .failure(.notFound("stream"))) }
    }

    private static let unanswered = Failure(
        .unavailable, "stream.unanswered", "The stream's replica could not be asked.", retryAfterSeconds: 1)

    func send(_ bytes: SharedBytes, to stream: String, tenant: String) {
        let data = JSONWriter.object { writer in
            writer.member("stream", stream)
            writer.member("bytes", bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
        }
        tell(Self.sent, tenant: tenant, data) {}
    }

    private func tell(
        _ name: StaticString, tenant: String, _ data: [UInt8], orElse fail: @escaping @Sendable () -> Void
    ) {
        let runner = runner
        do throws(StoreBusy) {
            try runner.store.write(
                lane: .random(in: 0...1023),
                { db in try runner.write(as: .system(tenant: tenant), in: db) { $0.tellReplicas(name, data: data) } },
                completion: { result in
                    if case .failure = result { fail() }
                })
        } catch {
            fail()
        }
    }

    // MARK: Hearing

    /// Called by the pump, which must not wait.
    private func receive(_ event: StreamEvent) {
        if let listener = listeners[event.name] { return listener(event) }
        guard case .object(let members)? = try? JSONValue(parsing: event.data) else { return }
        switch event.name {
        case "\(Self.revoked)":
            guard let revocation = Revocation(reading: members, tenant: event.tenant) else { return }
            directory.revocations.insert(revocation)
            directory.close(revocation)
        case "\(Self.asked)": answerIfHeld(members, tenant: event.tenant)
        case "\(Self.answered)":
            guard let id = members.string("id") else { return }
            settle(id, Self.answer(members))
        case "\(Self.sent)":
            guard let stream = members.string("stream"), let text = members.string("bytes"),
                directory.holds(stream)
            else { return }
            try? directory.send(SharedBytes(Array(text.utf8)), to: stream, tenant: event.tenant)
        default: return
        }
    }

    private func answerIfHeld(_ members: [String: JSONValue], tenant: String) {
        guard let id = members.string("id"), let stream = members.string("stream"), directory.holds(stream),
            let asker = Self.caller(members["asker"])
        else { return }
        let kind: StreamRequest.Kind
        if case .object(let wishes)? = members["wishes"] {
            kind = .replace(
                SubscriptionWishes(
                    topics: wishes.strings("topics"), tables: Self.subscriptions(wishes["tables"]),
                    lastEventID: wishes.string("lastEventId")))
        } else if let renewed = Self.caller(members["caller"]) {
            kind = .renew(renewed)
        } else {
            kind = .describe
        }
        let answer: @Sendable (Result<StreamDescription, Failure>) -> Void = { [self] result in
            let data = JSONWriter.object { writer in
                writer.member("id", id)
                switch result {
                case .success(let found):
                    writer.member("topics", found.topics)
                    writer.member("addedTopics", found.addedTopics)
                    writer.member("tables", found.tables)
                case .failure(let failure) where failure.kind == .unavailable:
                    writer.member("unavailable", failure.code)
                    writer.member("detail", failure.detail)
                case .failure: break
                }
            }
            tell(Self.answered, tenant: tenant, data) {}
        }
        if case .replace(let wishes) = kind {
            directory.replace(wishes, of: stream, as: asker, answer: answer)
        } else {
            directory.ask(stream, as: asker, kind, answer: answer)
        }
    }

    private static func answer(_ members: [String: JSONValue]) -> Result<StreamDescription, Failure> {
        if let code = members.string("unavailable") {
            return .failure(
                Failure(.unavailable, code, members.string("detail") ?? "", retryAfterSeconds: unavailableSeconds))
        }
        guard let topics = members.strings("topics"), let added = members.strings("addedTopics") else {
            return .failure(.notFound("stream"))
        }
        return .success(
            StreamDescription(topics: topics, addedTopics: added, tables: subscriptions(members["tables"]) ?? []))
    }

    /// After what time to ask again a replica that has no room.
    private static let unavailableSeconds = 30

    private static func subscriptions(_ value: JSONValue?) -> [TableSubscription]? {
        guard case .array(let values)? = value else { return nil }
        return try? TableSubscription.list(values, at: "")
    }

    // MARK: Callers as JSON

    private static func write(_ caller: Caller, to writer: inout JSONWriter) {
        caller.write(membersTo: &writer)
        writer.member("issuedAt", Int(caller.issuedAt.microseconds))
        writer.member("expiresAt", Int(caller.expiresAt.microseconds))
    }

    private static func caller(_ value: JSONValue?) -> Caller? {
        guard case .object(let members)? = value, let tenant = members.string("tenant"),
            let userId = members.string("userId"), let role = members.string("role"),
            let keys = members.strings("scope"), case .integer(let issuedAt)? = members["issuedAt"],
            case .integer(let expiresAt)? = members["expiresAt"], case .bool(let isService)? = members["isService"]
        else { return nil }
        return Caller(
            tenant: tenant, userId: ID(userId), role: role, isService: isService, tier: members.string("tier"),
            scope: Scope(tenant: tenant, keys: Set(keys)), claims: members.strings("claims").map(Set.init),
            tokenId: members.string("tokenId"),
            sessionId: members.string("sessionId"), issuedAt: Timestamp(microseconds: issuedAt),
            expiresAt: Timestamp(microseconds: expiresAt))
    }
}

extension Revocation {
    /// As replicas tell it one another; the tenant is the event's.
    var json: [UInt8] {
        JSONWriter.object { writer in
            switch self {
            case .token(_, let id): writer.member("tokenId", id)
            case .session(_, let id): writer.member("sessionId", id)
            case .user(_, let id, let moment):
                writer.member("userId", id)
                writer.member("issuedBefore", Int(moment.microseconds))
            }
        }
    }

    fileprivate init?(reading members: [String: JSONValue], tenant: String) {
        if let id = members.string("tokenId") {
            self = .token(tenant: tenant, id: id)
        } else if let id = members.string("sessionId") {
            self = .session(tenant: tenant, id: id)
        } else if let id = members.string("userId"), case .integer(let moment)? = members["issuedBefore"] {
            self = .user(tenant: tenant, id: ID(id), issuedBefore: Timestamp(microseconds: moment))
        } else {
            return nil
        }
    }
}

extension [String: JSONValue] {
    fileprivate func string(_ name: String) -> String? {
        if case .string(let text)? = self[name] { text } else { nil }
    }

    fileprivate func strings(_ name: String) -> [String]? {
        guard case .array(let values)? = self[name] else { return nil }
        return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }
}

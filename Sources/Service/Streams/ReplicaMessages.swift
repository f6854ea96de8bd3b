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
    private static let prefix = "bellhop:"

    /// Questions that wait for another replica: each holds a worker. More would be a client that asks in a loop.
    private static let waitingMax = 64
    /// A replica that has not answered by then is gone, and its streams with it.
    private static let answerSeconds = 3.0

    private let directory: StreamDirectory
    private let runner: TransactionRunner
    private let workers: WorkerPool
    /// Guards `waiting`.
    private let lock = NSLock()
    private var waiting: [String: ShardAnswer] = [:]

    init(directory: StreamDirectory, runner: TransactionRunner, workers: WorkerPool) {
        self.directory = directory
        self.runner = runner
        self.workers = workers
    }

    /// Takes committed events in their order: streams get theirs, and what replicas tell one another is done.
    func publish(_ events: [StreamEvent]) {
        var own = events
        if events.contains(where: { $0.name.hasPrefix(Self.prefix) }) {
            own = events.filter { !$0.name.hasPrefix(Self.prefix) }
            for event in events where event.name.hasPrefix(Self.prefix) { receive(event) }
        }
        directory.publish(own)
    }

    // MARK: Asking

    /// Asks the replica that holds a stream, and waits. On workers only.
    func ask(_ stream: String, as asker: Caller, _ kind: StreamRequest.Kind) throws -> [String] {
        let id = String(UInt64.random(in: .min ... .max), radix: 36)
        let answer = ShardAnswer()
        let isAdmitted = lock.withLock {
            guard waiting.count < Self.waitingMax else { return false }
            waiting[id] = answer
            return true
        }
        defer { lock.withLock { _ = waiting.removeValue(forKey: id) } }
        guard isAdmitted else {
            throw Failure(.unavailable, "stream.unanswered", "Too many questions wait.", retryAfterSeconds: 1)
        }
        let data = JSONWriter.object { writer in
            writer.member("id", id)
            writer.member("stream", stream)
            writer.member("asker") { Self.write(asker, to: &$0) }
            switch kind {
            case .describe: break
            case .replaceTopics(let topics): writer.member("topics", topics)
            case .renew(let caller): writer.member("caller") { Self.write(caller, to: &$0) }
            }
        }
        try tell(Self.asked, tenant: asker.tenant, data)
        guard let result = answer.wait(seconds: Self.answerSeconds) else { throw Failure.notFound("stream") }
        return try result.get()
    }

    func send(_ bytes: SharedBytes, to stream: String, tenant: String) throws {
        let data = JSONWriter.object { writer in
            writer.member("stream", stream)
            writer.member("bytes", bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
        }
        try tell(Self.sent, tenant: tenant, data)
    }

    private func tell(_ name: StaticString, tenant: String, _ data: [UInt8]) throws {
        let runner = runner
        try runner.store.writeAndWait { db in
            try runner.write(as: .system(tenant: tenant), in: db) { $0.tellReplicas(name, data: data) }
        }
    }

    // MARK: Hearing

    /// Called by the pump, which must not wait.
    private func receive(_ event: StreamEvent) {
        guard case .object(let members)? = try? JSONValue(parsing: event.data) else { return }
        switch event.name {
        case "\(Self.revoked)":
            guard let revocation = Revocation(reading: members, tenant: event.tenant) else { return }
            directory.revocations.insert(revocation)
            directory.close(revocation)
        case "\(Self.asked)": answerIfHeld(members, tenant: event.tenant)
        case "\(Self.answered)":
            guard let id = members.string("id"), let answer = lock.withLock({ waiting[id] }) else { return }
            if let topics = members.strings("topics") {
                answer.set(.success(topics))
            } else {
                answer.set(.failure(.notFound("stream")))
            }
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
        if let topics = members.strings("topics") {
            kind = .replaceTopics(topics)
        } else if let renewed = Self.caller(members["caller"]) {
            kind = .renew(renewed)
        } else {
            kind = .describe
        }
        // A full queue leaves the question unanswered, as if the stream were gone.
        _ = workers.submit { [self] in
            let result = try? directory.ask(stream, as: asker, kind)
            let data = JSONWriter.object { writer in
                writer.member("id", id)
                if let result { writer.member("topics", result) }
            }
            try? tell(Self.answered, tenant: tenant, data)
        }
    }

    // MARK: Callers as JSON

    private static func write(_ caller: Caller, to writer: inout JSONWriter) {
        writer.member("tenant", caller.tenant)
        writer.member("userId", caller.userId)
        writer.member("role", caller.role)
        writer.member("isService", caller.isService)
        writer.member("tier", caller.tier)
        writer.member("scope", caller.scope.keys.sorted())
        writer.member("tokenId", caller.tokenId)
        writer.member("sessionId", caller.sessionId)
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
            scope: Scope(tenant: tenant, keys: Set(keys)), tokenId: members.string("tokenId"),
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

import Foundation

@testable import BellhopCalls
@testable import BellhopClient

/// The test vectors of the machines that every client uses: connection, token, reconciliation, outbox.
enum CoreVectors {
    static let machines: [String: @Sendable (JSON) -> any VectorMachine] = [
        "identity": { _ in RunningIdentity() },
        "connection": { RunningConnection(options: $0) },
        "offline": { RunningOffline(options: $0) },
        "outbox": { RunningOutbox(options: $0) },
        "tables": { _ in RunningTables() },
        "session": { _ in RunningSession() },
        "reconciliation": { _ in RunningReconciliation() },
        "token": { _ in RunningToken() },
    ]

    struct UnknownInput: Error {
        let type: String
    }

    static func timer(_ name: String, _ at: Int?) -> JSON {
        ["do": "timer", "name": .string(name), "at": number(at)]
    }

    static func number(_ value: Int?) -> JSON { value.map { .integer(Int64($0)) } ?? .null }
    static func text(_ value: String?) -> JSON { value.map(JSON.string) ?? .null }
    static func texts(_ values: [String]) -> JSON { .array(values.map(JSON.string)) }
    static func state(_ machine: some Encodable) throws -> JSON { try JSON(parsing: JSONEncoder().encode(machine)) }
}

private struct RunningOffline: VectorMachine {
    private var machine: OfflineMachine

    init(options: JSON) {
        var limits = OfflineMachine.Limits()
        limits.bytesMax = options["bytesMax"].int ?? limits.bytesMax
        limits.entriesMax = options["entriesMax"].int ?? limits.entriesMax
        machine = OfflineMachine(limits: limits)
    }

    mutating func receive(_ json: JSON) throws -> [JSON] {
        machine.receive(try input(json), now: json["now"].int ?? 0).map(action)
    }

    /// The changed states are a set, which the vectors write as an object.
    func described() throws -> JSON {
        let state = try CoreVectors.state(machine)
        let changed = state["changed"].strings.map { ($0, JSON.bool(true)) }
        return state.with(["changed": .object(Dictionary(uniqueKeysWithValues: changed))])
    }

    private func input(_ json: JSON) throws -> OfflineMachine.Input {
        switch json["type"].string ?? "" {
        case "loaded": return .loaded(json["entries"].model() ?? [:])
        case "changed": return .changed(json["place"].string ?? "")
        case "timer": return .timer
        case "flush": return .flush
        case "sized": return .sized(json["sizes"].model() ?? [:])
        case "forget": return .forget
        case let type: throw CoreVectors.UnknownInput(type: type)
        }
    }

    private func action(_ action: OfflineMachine.Action) -> JSON {
        switch action {
        case .timer(let at): CoreVectors.timer("keep", at)
        case .measure(let names): ["do": "measure", "places": CoreVectors.texts(names)]
        case .write(let written, let removed, let entries):
            [
                "do": "write", "write": CoreVectors.texts(written), "remove": CoreVectors.texts(removed),
                "entries": JSON(model: entries),
            ]
        }
    }
}

private struct RunningConnection: VectorMachine {
    private var machine: ConnectionMachine

    init(options: JSON) {
        var limits = ConnectionMachine.Limits()
        limits.backgroundMilliseconds = options["backgroundMs"].int
        machine = ConnectionMachine(
            topics: (options["topics"].array ?? []).compactMap(\.string), isOnline: options["online"].bool ?? true,
            user: options["user"].string, identity: options["identity"].string, limits: limits)
    }

    mutating func receive(_ json: JSON) throws -> [JSON] {
        machine.receive(try input(json), now: json["now"].int ?? 0, random: json["random"].double ?? 0)
            .map(action)
    }

    func described() throws -> JSON { try CoreVectors.state(machine) }

    private func input(_ json: JSON) throws -> ConnectionMachine.Input {
        switch json["type"].string ?? "" {
        case "open": return .open
        case "close": return .close
        case "retry": return .retry(milliseconds: json["milliseconds"].int ?? 0)
        case "topics": return .topics((json["topics"].array ?? []).compactMap(\.string))
        case "scope": return .scope
        case "network":
            return .network(isOnline: json["online"].bool ?? true, isChanged: json["changed"].bool ?? false)
        case "lifecycle": return .lifecycle(isForeground: json["foreground"].bool ?? true)
        case "timer": return .timer(json["name"].string ?? "")
        default: return .from(attempt: json["attempt"].int ?? 0, try transportEvent(json))
        }
    }

    private func transportEvent(_ json: JSON) throws -> ConnectionMachine.TransportEvent {
        let status = json["status"].int ?? 0
        let wait = json["retryAfterMs"].int ?? 0
        let topics = (json["topics"].array ?? []).compactMap(\.string)
        switch json["type"].string ?? "" {
        case "bytes": return .bytes(at: json["now"].int ?? 0)
        case "head": return .head(status: status, problem: json["problem"], retryAfterMilliseconds: wait)
        case "ready":
            return .ready(
                streamId: json["streamId"].string ?? "", topics: topics, userId: json["userId"].string,
                identity: json["identity"].string)
        case "subscribed":
            let asked = (json["asked"].array ?? []).compactMap(\.string)
            return .subscribed(
                asked: asked, topics: topics, status: status, problem: json["problem"], retryAfterMilliseconds: wait)
        case "closing": return .closing(reason: json["reason"].string, retryAfterMilliseconds: wait)
        case "again": return .again(isFresh: json["fresh"].bool ?? false)
        case "ended": return .ended(code: json["code"].string ?? "lost", detail: json["detail"].string)
        case let type: throw CoreVectors.UnknownInput(type: type)
        }
    }

    private func action(_ action: ConnectionMachine.Action) -> JSON {
        switch action {
        case .timer(let name, let at): CoreVectors.timer(name, at)
        case .disconnect: ["do": "disconnect"]
        case .connect(let attempt, let topics, let isFresh):
            [
                "do": "connect", "attempt": .integer(Int64(attempt)), "topics": CoreVectors.texts(topics),
                "fresh": .bool(isFresh),
            ]
        case .subscribe(let attempt, let streamId, let topics):
            [
                "do": "subscribe", "attempt": .integer(Int64(attempt)), "streamId": .string(streamId),
                "topics": CoreVectors.texts(topics),
            ]
        }
    }
}

private struct RunningToken: VectorMachine {
    private var machine = TokenMachine()

    mutating func receive(_ json: JSON) throws -> [JSON] {
        machine.receive(try input(json), now: json["now"].int ?? 0).map { action in
            switch action {
            case .ask(let spent): ["do": "ask", "spent": CoreVectors.text(spent)]
            case .give(let token): ["do": "give", "token": CoreVectors.text(token)]
            case .timer(let name, let at): CoreVectors.timer(name, at)
            case .renew(let id, let token): ["do": "renew", "streamId": .string(id), "token": .string(token)]
            case .reconnect: ["do": "reconnect"]
            case .user(let user, _): ["do": "user", "user": CoreVectors.text(user)]
            }
        }
    }

    func described() throws -> JSON { try CoreVectors.state(machine) }

    private func input(_ json: JSON) throws -> TokenMachine.Input {
        let token = json["token"].string
        let streamId = json["streamId"].string ?? ""
        switch json["type"].string ?? "" {
        case "need": return .need(spent: json["spent"].string, problem: problem(json))
        case "token":
            return .token(
                token ?? "", subject: json["subject"].string, identity: json["identity"].string,
                lifeMilliseconds: json["lifeMs"].int)
        case "refused": return .refused(token ?? "", problem(json) ?? .init(code: ""))
        case "assume": return .assume(identity: json["identity"].string ?? "")
        case "failed": return .failed(problem(json) ?? .init(code: ""))
        case "timer": return .timer(json["name"].string ?? "")
        case "ready": return .ready(streamId: streamId, token: token)
        case "lost": return .lost
        case "expiring": return .expiring
        case "renewed": return .renewed(streamId: streamId, token: token ?? "", status: json["status"].int ?? 0)
        case let type: throw CoreVectors.UnknownInput(type: type)
        }
    }

    private func problem(_ json: JSON) -> ConnectionMachine.Reason? { json["problem"].model() }
}

private struct RunningSession: VectorMachine {
    private var machine = SessionMachine()

    mutating func receive(_ json: JSON) throws -> [JSON] {
        machine.receive(try input(json)).map { action in
            switch action {
            case .close: ["do": "close"]
            case .open(let identity): ["do": "open", "identity": .string(identity)]
            case .keep(let known):
                [
                    "do": "keep",
                    "known": [
                        "identity": .string(known.identity), "holder": CoreVectors.text(known.holder),
                        "person": CoreVectors.text(known.person),
                    ],
                ]
            case .confirm(let identity): ["do": "confirm", "identity": .string(identity)]
            }
        }
    }

    func described() throws -> JSON { try CoreVectors.state(machine) }

    private func input(_ json: JSON) throws -> SessionMachine.Input {
        switch json["type"].string ?? "" {
        case "begin":
            return .begin(
                holder: json["holder"].string, person: json["person"].string, known: json["known"].model() ?? [])
        case "told":
            return .told(
                .init(
                    identity: json["identity"].string ?? "", holder: json["holder"].string,
                    person: json["person"].string))
        case "user": return .user
        case let type: throw CoreVectors.UnknownInput(type: type)
        }
    }
}

private struct RunningTables: VectorMachine {
    private var machine = TablesMachine()

    mutating func receive(_ json: JSON) throws -> [JSON] {
        if json["type"].string == "seen" { return [seen(json["event"], by: json["prefixes"].strings)] }
        return machine.receive(try input(json), now: json["now"].int ?? 0).map { action in
            switch action {
            case .timer(let at): return CoreVectors.timer("tables", at)
            case .put(let id, let count, let tables, let since):
                let put: JSON = [
                    "do": "put", "streamId": .string(id), "count": .integer(Int64(count)), "tables": .array(tables),
                ]
                return since.map { put.with(["lastEventId": .string($0)]) } ?? put
            case .answered(let answer):
                return [
                    "do": "answered", "status": .integer(Int64(answer.status)), "body": answer.body,
                    "refused": .object(answer.refused),
                ]
            }
        }
    }

    func described() throws -> JSON { try CoreVectors.state(machine) }

    private func seen(_ event: JSON, by prefixes: [String]) -> JSON {
        let data = TablesMachine.seen(by: prefixes, event["name"].string ?? "", event["data"])
        return ["do": "seen", "event": data.map { event.with(["data": $0]) } ?? .null]
    }

    private func input(_ json: JSON) throws -> TablesMachine.Input {
        switch json["type"].string ?? "" {
        case "want": return .want(json["tables"].array ?? [], lastEventId: json["lastEventId"].string)
        case "ready": return .ready(streamId: json["streamId"].string ?? "", since: json["since"].string)
        case "lost": return .lost
        case "timer": return .timer
        case "answer":
            return .answer(
                count: json["count"].int ?? 0, status: json["status"].int ?? 0, body: json["body"],
                retryAfterMilliseconds: json["retryAfterMs"].int ?? 0)
        case let type: throw CoreVectors.UnknownInput(type: type)
        }
    }
}

private struct RunningIdentity: VectorMachine {
    private var claims = TokenClaims(of: "")

    mutating func receive(_ json: JSON) throws -> [JSON] {
        claims = TokenClaims(payload: json["payload"])
        return []
    }

    func described() throws -> JSON { try CoreVectors.state(claims) }
}

private struct RunningReconciliation: VectorMachine {
    private var machine = ReconciliationMachine()

    mutating func receive(_ json: JSON) throws -> [JSON] {
        machine.receive(try input(json), now: json["now"].int ?? 0).map { action in
            switch action {
            case .timer(let name, let at): CoreVectors.timer(name, at)
            case .fetch(let path, let headers, let asked):
                [
                    "do": "fetch", "path": .string(path), "headers": .object(headers.mapValues(JSON.string)),
                    "asked": .integer(Int64(asked)),
                ]
            case .reconciled(let status, let body):
                ["do": "reconciled", "status": .integer(Int64(status)), "body": body]
            }
        }
    }

    func described() throws -> JSON { try CoreVectors.state(machine) }

    private func input(_ json: JSON) throws -> ReconciliationMachine.Input {
        switch json["type"].string ?? "" {
        case "start": return .start
        case "connection":
            return .connection(
                isLive: json["status"].string == "live", isReconnected: json["reconnected"].bool ?? false)
        case "lifecycle": return .lifecycle(isForeground: json["foreground"].bool ?? true)
        case "tabSwitch": return .tabSwitch
        case "force": return .force
        case "timer": return .timer
        case "answer":
            return .answer(
                asked: json["asked"].int, status: json["status"].int ?? 0, etag: json["etag"].string,
                body: json["body"], retryAfterMilliseconds: json["retryAfterMs"].int ?? 0)
        case "user": return .user
        case let type: throw CoreVectors.UnknownInput(type: type)
        }
    }
}

private struct RunningOutbox: VectorMachine {
    private var machine: OutboxMachine

    init(options: JSON) {
        var limits = OutboxMachine.Limits()
        limits.itemsMax = options["itemsMax"].int ?? limits.itemsMax
        machine = OutboxMachine(
            isOnline: options["online"].bool ?? true, isRestored: options["restored"].bool ?? true,
            identity: options["identity"].string, limits: limits)
    }

    mutating func receive(_ json: JSON) throws -> [JSON] {
        try machine.receive(try input(json), now: json["now"].int ?? 0, random: json["random"].double ?? 0)
            .map(action)
    }

    /// A missing member of an item is null or absent in the vectors.
    func described() throws -> JSON {
        let state = try CoreVectors.state(machine)
        guard case .object(var members) = state else { return state }
        members["items"] = .array((members["items"]?.array ?? []).map(nulled))
        return .object(members)
    }

    private func input(_ json: JSON) throws -> OutboxMachine.Input {
        switch json["type"].string ?? "" {
        case "restored": return .restored(try (json["items"].array ?? []).map(item))
        case "add": return .add(try item(json["item"]))
        case "network": return .network(isOnline: json["online"].bool ?? true)
        case "connection": return .connection(isLive: json["status"].string == "live")
        case "marked": return .marked(try item(json["item"]))
        case "answer":
            let headers = (json["headers"].object ?? [:]).compactMapValues(\.string)
            let outcome = OutboxMachine.Outcome(
                status: json["status"].int ?? 0, headers: headers, body: json["body"])
            return .answer(
                key: json["key"].string ?? "", outcome, retryAfterMilliseconds: json["retryAfterMs"].int ?? 0)
        case "timer": return .timer
        case "forget": return .forget
        case let type: throw CoreVectors.UnknownInput(type: type)
        }
    }

    private func action(_ action: OutboxMachine.Action) throws -> JSON {
        switch action {
        case .timer(let name, let at): CoreVectors.timer(name, at)
        case .mark(let item): ["do": "mark", "item": try json(item)]
        case .request(let item): ["do": "request", "item": try json(item)]
        case .remove(let item): ["do": "remove", "item": try json(item)]
        case .answered(let item, let outcome):
            [
                "do": "answered", "item": try json(item),
                "answer": [
                    "status": .integer(Int64(outcome.status)), "body": outcome.body,
                    "headers": .object(outcome.headers.mapValues(JSON.string)),
                ],
            ]
        }
    }

    private func item(_ json: JSON) throws -> OutboxItem {
        try JSONDecoder().decode(OutboxItem.self, from: json.data)
    }

    private func json(_ item: OutboxItem) throws -> JSON { nulled(try CoreVectors.state(item)) }

    private func nulled(_ item: JSON) -> JSON {
        guard case .object(var members) = item else { return item }
        members["tried"] = members["tried"] ?? .null
        return .object(members)
    }
}

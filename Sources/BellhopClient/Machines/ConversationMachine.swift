/// The messages of one conversation, oldest first.
///
/// A message shows as soon as it is sent. It goes through the outbox, and its answer or its event, whichever arrives
/// first, confirms it. A refused message moves to ``refused``, where the user can resend or discard it.
public struct ConversationMachine: FeatureMachine {
    public let conversationId: String
    public private(set) var messages: [JSON] = []
    public private(set) var sending: [JSON] = []
    public private(set) var refused: [JSON] = []
    public private(set) var unread: JSON = .null
    public private(set) var isLoaded = false
    public private(set) var isRemoved = false
    public private(set) var hasEarlier = false
    public private(set) var problem: JSON = .null
    private var readPosition: JSON = .null
    private var next: String?
    private var tries = 0
    private var loading = Loading()

    /// Older messages beyond this number are dropped, and fetched again on demand.
    private static let messagesMax = 500
    /// Bound on unsent messages. Without it, a user that keeps writing offline could fill the memory.
    private static let sendingMax = 200

    public init(conversationId: String) {
        self.conversationId = conversationId
    }

    private var path: String { "/v1/conversations/\(conversationId.pathSegment)" }

    public mutating func receive(_ input: FeatureInput, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            self = ConversationMachine(conversationId: conversationId)
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        let plan = Loading.Plan(
            name: "list", path: "\(path)/messages?limit=50", events: ["message:created", "message:deleted"])
        let step = loading.advance(input, plan, now: now)
        var actions = step.actions
        if step.actions.contains(where: \.isFetch) { actions.append(.fetch(path: path, as: "conversation")) }
        if let body = step.body {
            take(page: body)
            for event in step.since { _ = handle(event.name, event.data) }
        }
        switch input {
        case .event(let name, let data, _): actions += handle(name, data)
        case .answer(let name, let status, let body, _):
            actions += answered(name, ClassifiedAnswer(status: status, body: body))
        case .command(let name, let arguments): actions += command(name, arguments, now: now)
        default: break
        }
        // A message that has arrived is no longer being sent.
        let ids = Set(messages.compactMap { $0["id"].string })
        sending.removeAll { ids.contains($0["id"].string ?? "") }
        (isLoaded, problem, hasEarlier) = (loading.isLoaded, loading.problem, next != nil)
        return actions
    }

    private mutating func take(page body: JSON) {
        let page = Array((body["items"].array ?? []).reversed())
        // Older pages stay if they join the fetched one. Otherwise there is a gap, and they are dropped.
        let first = page.first?["sequence"].int ?? 0
        let isJoined = messages.contains { ($0["sequence"].int ?? 0) >= first - 1 }
        let older = isJoined ? messages.filter { ($0["sequence"].int ?? 0) < first } : []
        if older.isEmpty { next = body["next"].string }
        messages = older + page
    }

    private mutating func handle(_ name: String, _ data: JSON) -> [FeatureAction] {
        let id = data["conversationId"].string ?? data["conversation"]["id"].string
        guard id == conversationId else { return [] }
        switch name {
        case "message:created":
            let last = messages.last?["sequence"].int
            add([data["message"]])
            if !data["unread"].isNull { unread = data["unread"] }
            // Sequence numbers have no gaps: a skipped number means that a message was missed.
            guard let last, let sequence = data["message"]["sequence"].int, sequence > last + 1 else { break }
            return [fetchSince(last)]
        case "message:deleted":
            messages = messages.map { message in
                guard message["sequence"] == data["sequence"], message["deletedAt"].isNull else { return message }
                return message.with(["text": "", "deletedAt": message["sentAt"]])
            }
            if !data["unread"].isNull { unread = data["unread"] }
        case "conversation:read": (readPosition, unread) = (data["readPosition"], data["unread"])
        case "conversation:removed": isRemoved = true
        case "conversation:updated": isRemoved = false
        default: break
        }
        return []
    }

    // MARK: Commands of the user

    private mutating func command(_ command: String, _ arguments: JSON, now: Int) -> [FeatureAction] {
        let id = arguments["id"].string ?? ""
        switch command {
        case "send":
            return post(["id": arguments["id"], "text": arguments["text"], "sentAt": .string(Moment.text(now))])
        case "retry":
            guard let index = refused.firstIndex(where: { $0["id"].string == id }) else { return [] }
            let message = refused.remove(at: index)
            return post(["id": message["id"], "text": message["text"], "sentAt": .string(Moment.text(now))])
        case "discard":
            refused.removeAll { $0["id"].string == id }
            return []
        case "read":
            let sequence = arguments["sequence"].int ?? messages.last?["sequence"].int ?? 0
            // The count falls only after the service has confirmed it (R-CNT-RT-2).
            guard sequence > (readPosition.int ?? 0) else { return [] }
            return [.send("PUT", "\(path)/read-position", ["sequence": .integer(Int64(sequence))], as: "read")]
        case "earlier":
            guard let next else { return [] }
            return [.fetch(path: "\(path)/messages?limit=50&cursor=\(next.pathSegment)", as: "earlier")]
        case "delete": return [.send("DELETE", "\(path)/messages/\(id.pathSegment)", as: "delete")]
        default: return []
        }
    }

    private mutating func post(_ message: JSON) -> [FeatureAction] {
        guard sending.count < ConversationMachine.sendingMax else {
            return refuse(
                message, ["status": 0, "code": "outbox.full", "detail": "Too many messages are waiting to be sent."])
        }
        tries += 1
        let name = "send-\(tries)"
        sending.append(message.with(["as": .string(name)]))
        let body: JSON = ["id": message["id"], "text": message["text"]]
        return [
            .send("POST", "\(path)/messages", body, as: name),
            .tell(name: "message:sending", data: message.with(["conversationId": .string(conversationId)])),
        ]
    }

    private mutating func refuse(_ message: JSON, _ problem: JSON) -> [FeatureAction] {
        let told: JSON = ["id": message["id"], "text": message["text"], "problem": problem]
        sending.removeAll { $0["id"] == message["id"] }
        refused = (refused + [told.with(["sentAt": message["sentAt"]])]).suffix(ConversationMachine.sendingMax)
        return [.tell(name: "message:refused", data: told.with(["conversationId": .string(conversationId)]))]
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        let body = answer.body
        if let index = sending.firstIndex(where: { $0["as"].string == name }) {
            guard answer.isTaken else { return refuse(sending[index], answer.problem) }
            let id = sending.remove(at: index)["id"]
            if !body["message"].isNull { add([body["message"]]) }
            if !body["unread"].isNull { unread = body["unread"] }
            let sent: JSON = ["conversationId": .string(conversationId), "id": id]
            return answer.badgesEvent + [.tell(name: "message:sent", data: sent)]
        }
        if name == "read" || name == "delete" {
            guard answer.isTaken else {
                let data: JSON = [
                    "conversationId": .string(conversationId), "what": .string(name), "problem": answer.problem,
                ]
                return [.tell(name: "conversation:refused", data: data)]
            }
            if !body["readPosition"].isNull { readPosition = body["readPosition"] }
            if !body["unread"].isNull { unread = body["unread"] }
            return answer.badgesEvent
        }
        guard answer.isTaken else { return [] }
        switch name {
        case "conversation": (unread, readPosition, isRemoved) = (body["unread"], body["readPosition"], false)
        case "earlier":
            add(body["items"].array ?? [])
            next = body["next"].string
        case "since":
            let page = body["items"].array ?? []
            add(page)
            if !body["next"].isNull, let last = page.last?["sequence"].int { return [fetchSince(last)] }
        default: break
        }
        return []
    }

    private func fetchSince(_ sequence: Int) -> FeatureAction {
        .fetch(path: "\(path)/messages?since=\(sequence)&limit=100", as: "since")
    }

    private mutating func add(_ newer: [JSON]) {
        let numbers = Set(messages.compactMap { $0["sequence"].int })
        let fresh = newer.filter { $0["sequence"].int.map { !numbers.contains($0) } ?? false }
        guard !fresh.isEmpty else { return }
        let all = (messages + fresh).sorted { ($0["sequence"].int ?? 0) < ($1["sequence"].int ?? 0) }
        messages = all.suffix(ConversationMachine.messagesMax)
    }

    private enum CodingKeys: CodingKey {
        case conversationId, messages, sending, refused, unread, readPosition, isLoaded, isRemoved, hasEarlier, problem
    }
}

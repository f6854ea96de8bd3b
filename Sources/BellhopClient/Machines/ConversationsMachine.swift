/// A user's list of conversations, ordered by newest message, each with its preview and its unread count.
///
/// A message being sent becomes its conversation's preview at once, and is removed if the service refuses it.
public struct ConversationsMachine: FeatureMachine {
    public private(set) var user: String?
    /// The shown conversations.
    public private(set) var items: [JSON] = []
    public private(set) var isLoaded = false
    public private(set) var hasMore = false
    public private(set) var problem: JSON = .null
    private var stored: [JSON] = []
    private var sending: [JSON] = []
    private var next: String?
    private var loading = Loading()

    /// The maximum number of conversations of a user (`conversations.conversationsOfUserMax` of `/v1/config`).
    private static let storedMax = 1000
    /// The maximum number of unsent messages of one conversation.
    private static let sendingMax = 200
    private static let plan = Loading.Plan(
        name: "list", path: "/v1/conversations?limit=100",
        events: [
            "message:created", "message:deleted", "conversation:read", "conversation:updated", "conversation:removed",
        ])

    public init(user: String? = nil) {
        self.user = user
    }

    public mutating func receive(_ input: FeatureInput, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            self = ConversationsMachine(user: user)
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        if case .start(let user, _) = input { self.user = self.user ?? user }
        let step = loading.advance(input, ConversationsMachine.plan, now: now)
        var actions = step.actions
        if let body = step.body {
            // If the list has further pages, the older conversations already loaded are kept behind the first page.
            let page = body["items"].array ?? []
            if next == nil || body["next"].isNull { (stored, next) = (page, body["next"].string) } else { merge(page) }
            for event in step.since { _ = handle(event.name, event.data) }
        }
        switch input {
        case .event(let name, let data, _): actions += handle(name, data)
        case .command("more", _):
            if let next {
                actions.append(.fetch(path: "\(ConversationsMachine.plan.path)&cursor=\(next.pathSegment)", as: "more"))
            }
        case .answer("more", 200, let body, _):
            stored = ConversationsMachine.merged(body["items"].array ?? [], stored)
            next = body["next"].string
        case .answer(let name, 200, let body, _): if name.hasPrefix("one:") { merge([body]) }
        default: break
        }
        show()
        return actions
    }

    private mutating func handle(_ name: String, _ data: JSON) -> [FeatureAction] {
        let id = data["conversationId"]
        let held = stored.first { $0["id"] == id }
        switch name {
        case "stream:ready": user = user ?? data["userId"].string
        case "message:created":
            sending.removeAll { $0["id"] == data["message"]["id"] }
            guard let held else {
                let id = id.string ?? ""
                return [.fetch(path: "/v1/conversations/\(id.pathSegment)", as: "one:\(id)")]
            }
            add(data, to: held)
        case "message:deleted":
            guard let held else { break }
            let isLast = held["lastMessage"]["sequence"] == data["sequence"]
            let last = isLast ? held["lastMessage"].with(["preview": .null]) : held["lastMessage"]
            merge([held.with(["lastMessage": last, "unread": data["unread"].isNull ? held["unread"] : data["unread"]])])
        case "conversation:read":
            if let held { merge([held.with(["readPosition": data["readPosition"], "unread": data["unread"]])]) }
        case "conversation:updated":
            let newer = data["conversation"]
            // A new member has no unread messages from earlier.
            let own: JSON = ["readPosition": newer["lastSequence"], "unread": 0]
            merge([(stored.first { $0["id"] == newer["id"] } ?? own).with(newer.object ?? [:])])
        case "conversation:removed": stored.removeAll { $0["id"] == id }
        case "message:sending":
            let message: JSON = [
                "id": data["id"], "conversationId": id,
                "preview": .string(String((data["text"].string ?? "").prefix(120))),
                "sentAt": data["sentAt"],
            ]
            sending = (sending.filter { $0["id"] != data["id"] } + [message]).suffix(ConversationsMachine.sendingMax)
        case "message:sent", "message:refused": sending.removeAll { $0["id"] == data["id"] }
        default: break
        }
        return []
    }

    private mutating func add(_ data: JSON, to held: JSON) {
        let message = data["message"]
        // The message is already included, for example by a list fetched meanwhile.
        guard let sequence = message["sequence"].int, sequence > (held["lastSequence"].int ?? 0) else { return }
        let isOwn = message["senderId"].string == user
        let counted = isOwn ? held["unread"] : .integer(Int64((held["unread"].int ?? 0) + 1))
        let preview = data["preview"].isNull ? message["text"] : data["preview"]
        merge([
            held.with([
                "order": data["order"].isNull ? held["order"] : data["order"], "lastSequence": message["sequence"],
                "unread": data["unread"].isNull ? counted : data["unread"],
                "lastMessage": [
                    "id": message["id"], "sequence": message["sequence"], "senderId": message["senderId"],
                    "preview": preview, "sentAt": message["sentAt"],
                ],
            ])
        ])
    }

    private mutating func merge(_ newer: [JSON]) {
        stored = ConversationsMachine.merged(stored, newer)
    }

    private static func merged(_ stored: [JSON], _ newer: [JSON]) -> [JSON] {
        let ids = Set(newer.compactMap { $0["id"].string })
        let all = newer + stored.filter { !ids.contains($0["id"].string ?? "") }
        return Array(all.sorted { ($0["order"].string ?? "") > ($1["order"].string ?? "") }.prefix(storedMax))
    }

    /// Puts conversations with an unsent message on top, with that message as the preview.
    private mutating func show() {
        items = stored
        for message in sending {
            guard let index = items.firstIndex(where: { $0["id"] == message["conversationId"] }) else { continue }
            let held = items.remove(at: index)
            let last: JSON = [
                "id": message["id"], "sequence": .null, "senderId": user.map(JSON.string) ?? .null,
                "preview": message["preview"], "sentAt": message["sentAt"],
            ]
            items.insert(held.with(["lastMessage": last]), at: 0)
        }
        (isLoaded, problem, hasMore) = (loading.isLoaded, loading.problem, next != nil)
    }

    private enum CodingKeys: CodingKey { case user, items, isLoaded, hasMore, problem, stored, sending }
}

import Foundation

/// A user's list of conversations, ordered by newest message, each with its preview and its unread count.
///
/// A message being sent becomes its conversation's preview at once, and is removed if the service refuses it.
public struct ConversationsMachine: ShownMachine {
    public private(set) var user: String?
    /// The shown conversations.
    public private(set) var items: [Item] = []
    public private(set) var isLoaded = false
    public private(set) var hasMore = false
    public private(set) var problem: JSON = .null
    /// The conversations as the service has sent them, without the messages that are being sent.
    private var list = ListMachine(ConversationsRules())
    private var sending: [Outgoing] = []

    /// One line of the list.
    public struct Item: Sendable, Hashable, Identifiable {
        public internal(set) var conversation: Bellhop.Conversation
        /// Whether the last message is still being sent.
        public internal(set) var isSending = false
        public var id: String { conversation.id }
    }

    /// A message that a conversation's machine is sending.
    private struct Outgoing: Sendable, Codable {
        let id: String
        let conversationId: String
        let text: String
        let sentAt: Date
        /// The name of the answer, for a message of an earlier start.
        var answerName: String?

        var preview: String { String(text.prefix(120)) }
    }

    private struct Sent: Decodable { let id: String }

    /// The maximum number of unsent messages of one conversation.
    private static let sendingMax = 200
    public init(user: String? = nil) {
        self.user = user
    }

    public mutating func receive(_ input: FeatureInput<ConversationsCommand>, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            self = ConversationsMachine(user: user)
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        if case .start(let user, _) = input { self.user = self.user ?? user }
        let step = list.advance(input, now: now)
        var actions = step.actions
        if let answer = step.answer {
            // If the list has further pages, the older conversations already loaded are kept behind the first page.
            let page = answer.page(of: Bellhop.Conversation.self)
            if list.next == nil || page.next == nil { list.take(page) } else { list.merge(page.items) }
            for event in step.since { _ = handle(event.event, now: event.now) }
        }
        switch input {
        case .event(let event): actions += handle(event, now: now)
        case .command(.more): actions += list.fetchMore()
        case .answer(let name, let status, let body, _):
            let answer = ClassifiedAnswer(status: status, body: body)
            if !list.takeMore(name, answer), answer.isTaken, name.hasPrefix("one:") {
                if let one: Bellhop.Conversation = body.model() { list.put(one) }
            }
            sending.removeAll { $0.answerName == name }
        case .restore: if let kept = input.restored(Kept.self) { _ = list.restore(kept.items) }
        case .waiting(let items): wait(for: items, now: now)
        default: break
        }
        show()
        return actions
    }

    /// The state to keep on the device.
    private struct Kept: Codable, Sendable {
        let items: [Bellhop.Conversation]
    }

    public var kept: (any Encodable & Sendable)? { list.kept.map(Kept.init) }

    private mutating func wait(for items: [OutboxItem], now: Int) {
        for item in items {
            let sentAt = Moment.text(item.createdAt ?? Moment.date(now))
            guard let id = item.match("POST", "/v1/conversations/*/messages")?.first,
                let body = item.body?.with(["conversationId": .string(id), "sentAt": .string(sentAt)]),
                var message = body.model(Outgoing.self),
                !sending.contains(where: { $0.id == message.id })
            else { continue }
            message.answerName = item.answerName
            sending = (sending + [message]).suffix(ConversationsMachine.sendingMax)
        }
    }

    private mutating func handle(_ event: FeatureEvent, now: Int) -> [FeatureAction] {
        if list.apply(event, now: now) { return [] }
        if let arrival = NewMessage(event) {
            sending.removeAll { $0.id == arrival.message.id }
            let user = user
            guard change(arrival.conversationId, { $0.add(arrival, for: user) }) else {
                let id = arrival.conversationId
                return [.fetch(path: "/v1/conversations/\(id.pathSegment)", as: "one:\(id)")]
            }
        }
        switch event.typed {
        case .streamReady(let ready): user = user ?? ready.userId
        case .messageDeleted(let deleted):
            change(deleted.conversationId) { held in
                if held.lastMessage?.sequence == deleted.sequence { held.lastMessage?.preview = nil }
                held.unread = deleted.unread ?? held.unread
            }
        default: handleLocal(event)
        }
        return []
    }

    /// Handles an event of a conversation's machine.
    private mutating func handleLocal(_ event: FeatureEvent) {
        switch event.name {
        case "message:sending":
            guard let message = event.data.model(Outgoing.self) else { break }
            sending = (sending.filter { $0.id != message.id } + [message]).suffix(ConversationsMachine.sendingMax)
        case "message:sent", "message:refused":
            if let sent = event.data.model(Sent.self) { sending.removeAll { $0.id == sent.id } }
        default: break
        }
    }

    /// Changes a conversation of the list. Returns false if the list has no such conversation.
    @discardableResult
    private mutating func change(_ id: String, _ change: (inout Bellhop.Conversation) -> Void) -> Bool {
        guard var held = list.find(id) else { return false }
        change(&held)
        list.merge([held])
        return true
    }

    /// Puts conversations with an unsent message on top, with that message as the preview.
    private mutating func show() {
        items = list.stored.map { Item(conversation: $0) }
        for message in sending {
            guard let index = items.firstIndex(where: { $0.id == message.conversationId }) else { continue }
            var item = items.remove(at: index)
            item.isSending = true
            // The message will get the next sequence number.
            item.conversation.lastMessage = .init(
                id: message.id, sequence: item.conversation.lastSequence + 1, senderId: user ?? "",
                preview: message.preview, sentAt: message.sentAt)
            items.insert(item, at: 0)
        }
        (isLoaded, problem, hasMore) = (list.loading.isLoaded, list.loading.problem, list.next != nil)
    }

    public struct Snapshot: Sendable, Hashable {
        /// The conversation with the newest message comes first.
        public let items: [Item]
        /// Whether there are older conversations.
        public let hasMore: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public var snapshot: Snapshot {
        Snapshot(items: items, hasMore: hasMore, isLoaded: isLoaded, problem: Bellhop.Problem(problem))
    }

    private enum CodingKeys: CodingKey { case user, items, isLoaded, hasMore, problem, sending }
}

/// The commands of the user or the app.
public enum ConversationsCommand: Sendable, Hashable {
    case more
}

extension ConversationsMachine.Item: Encodable {
    /// Encodes the conversation alone. An unsent last message has no sequence number in this form.
    public func encode(to encoder: any Encoder) throws {
        let json = JSON(model: conversation)
        let unsent = JSON(model: conversation.lastMessage).with(["sequence": .null])
        try (isSending ? json.with(["lastMessage": unsent]) : json).encode(to: encoder)
    }
}

private struct ConversationsRules: ListRules {
    typealias Data = ConversationsList

    /// An event does not say what the user has read. A new member has no unread messages from earlier.
    func joined(_ newer: Bellhop.Conversation, _ held: Bellhop.Conversation?) -> Bellhop.Conversation? {
        var item = newer
        item.readPosition = newer.readPosition ?? (held == nil ? newer.lastSequence : held?.readPosition)
        item.unread = newer.unread ?? (held == nil ? 0 : held?.unread)
        return item
    }
}

extension Bellhop.Conversation {
    fileprivate mutating func add(_ arrival: NewMessage, for user: String?) {
        let message = arrival.message
        // The message may be included already, for example by a list fetched meanwhile.
        guard message.sequence > lastSequence else { return }
        let counted = message.senderId == user ? unread : (unread ?? 0) + 1
        (order, lastSequence, unread) = (arrival.order ?? order, message.sequence, arrival.unread ?? counted)
        lastMessage = .init(
            id: message.id, sequence: message.sequence, senderId: message.senderId,
            preview: arrival.preview ?? message.text, sentAt: message.sentAt)
    }
}

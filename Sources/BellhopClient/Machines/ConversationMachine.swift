import Foundation

/// The messages of one conversation, oldest first.
///
/// A message shows as soon as it is sent. It goes through the outbox, and its answer or its event, whichever arrives
/// first, confirms it. A refused message moves to ``refused``, where the user can resend or discard it.
public struct ConversationMachine: ShownMachine {
    public let conversationId: String
    public private(set) var messages: [Bellhop.Message] = []
    public private(set) var sending: [Outgoing] = []
    public private(set) var refused: [Outgoing] = []
    public private(set) var unread: Int?
    public private(set) var isLoaded = false
    public private(set) var isRemoved = false
    public private(set) var hasEarlier = false
    public private(set) var problem: JSON = .null
    private var readPosition: Int?
    private var list: ListMachine<MessagesRules>
    private var tries = 0
    /// Whether the user has read the conversation before its first page came.
    private var isReadPending = false

    /// A message that is being sent.
    public struct Outgoing: Sendable, Hashable, Identifiable {
        public let id: String
        public let text: String
        public let sentAt: Date?
        /// Why the service refused the message; nil while it is being sent.
        public internal(set) var problem: Bellhop.Problem?
        /// The name of the request.
        fileprivate var request = ""
        /// The refusal in the form of events.
        fileprivate var refusal: JSON?
    }

    /// The members of an answer that are sent only if they changed.
    private struct Changes: Decodable {
        let message: Bellhop.Message?
        let unread: Int?
        let readPosition: Int?
    }

    /// Bound on unsent messages. Without it, a user that keeps writing offline could fill the memory.
    private static let sendingMax = 200

    public init(conversationId: String) {
        self.conversationId = conversationId
        list = ListMachine(MessagesRules(), ["conversationId": conversationId])
    }

    private var path: String { "/v1/conversations/\(conversationId.pathSegment)" }

    public mutating func receive(_ input: FeatureInput<ConversationCommand>, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            self = ConversationMachine(conversationId: conversationId)
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        let wasKept = list.loading.isKept
        let step = list.advance(input, now: now)
        var actions = step.actions
        if step.actions.contains(where: \.isFetch) { actions.append(.fetch(path: path, as: "conversation")) }
        if step.isGone { (unread, readPosition) = (nil, nil) }
        if let answer = step.answer {
            take(answer.page(), isFirst: wasKept)
            for event in step.since { _ = handle(event.event, now: event.now) }
            if isReadPending { actions += read(nil) }
            isReadPending = false
        }
        switch input {
        case .event(let event): actions += handle(event, now: now)
        case .answer(let name, let status, let body, _):
            actions += answered(name, ClassifiedAnswer(status: status, body: body))
        case .command(let command): actions += self.command(command, now: now)
        case .restore: restore(input.restored())
        case .waiting(let items): wait(for: items)
        default: break
        }
        // A message that has arrived is no longer being sent.
        messages = list.stored
        let ids = Set(messages.map(\.id))
        sending.removeAll { ids.contains($0.id) }
        (isLoaded, problem, hasEarlier) = (list.loading.isLoaded, list.loading.problem, list.next != nil)
        return actions
    }

    // MARK: Kept state

    /// The state to keep on the device.
    private struct Kept: Codable, Sendable {
        let messages: [Bellhop.Message]
        let refused: [Outgoing]
        let unread: Int?
        let readPosition: Int?
    }

    public var kept: (any Encodable & Sendable)? {
        // Messages of a conversation that the user has left do not stay on the device.
        guard let messages = list.kept, !isRemoved else { return nil }
        return Kept(messages: messages, refused: refused, unread: unread, readPosition: readPosition)
    }

    private mutating func restore(_ kept: Kept?) {
        guard let kept, list.restore(kept.messages) else { return }
        (unread, readPosition) = (unread ?? kept.unread, readPosition ?? kept.readPosition)
        refused = kept.refused + refused
    }

    private mutating func wait(for items: [OutboxItem]) {
        for item in items {
            guard item.match("POST", "/v1/conversations/*/messages") == [conversationId],
                let message = item.body?.model(Bellhop.SendMessageBody.self), let id = message.id,
                !sending.contains(where: { $0.id == id })
            else { continue }
            sending.append(Outgoing(id: id, text: message.text, sentAt: item.createdAt, request: item.answerName))
        }
    }

    /// - Parameter isFirst: Whether the messages so far are from an earlier start.
    private mutating func take(_ loaded: LoadedPage<Bellhop.Message>, isFirst: Bool) {
        let page = Array(loaded.items.reversed())
        // Older pages stay if they join the fetched one. Otherwise there is a gap, and they are dropped, as are messages
        // of an earlier start: the position of the page before them is unknown.
        let first = page.first?.sequence ?? 0
        let isJoined = list.stored.contains { $0.sequence >= first - 1 }
        let older = isJoined && !isFirst ? list.stored.filter { $0.sequence < first } : []
        if older.isEmpty { list.next = loaded.next }
        list.stored = older + page
    }

    private mutating func handle(_ event: FeatureEvent, now: Int) -> [FeatureAction] {
        let last = list.stored.last?.sequence
        list.apply(event, named: conversationId, now: now)
        if let arrival = NewMessage(event), arrival.conversationId == conversationId {
            unread = arrival.unread ?? unread
            // Sequence numbers have no gaps: a skipped number means that a message was missed.
            guard let last, arrival.message.sequence > last + 1 else { return [] }
            return [fetchSince(last)]
        }
        switch event.typed {
        case .messageDeleted(let deleted) where deleted.conversationId == conversationId:
            if var message = list.find(deleted.messageId), message.deletedAt == nil {
                (message.text, message.deletedAt) = ("", message.sentAt)
                list.merge([message])
            }
            unread = deleted.unread ?? unread
        case .conversationRead(let read) where read.conversationId == conversationId:
            (readPosition, unread) = (read.readPosition, read.unread)
        case .conversationRemoved(let removal) where removal.conversationId == conversationId: isRemoved = true
        case .conversationUpdated(let update) where update.conversation.id == conversationId: isRemoved = false
        default: break
        }
        return []
    }

    // MARK: Commands of the user

    private mutating func command(_ command: ConversationCommand, now: Int) -> [FeatureAction] {
        switch command {
        case .send(let id, let text): return post(Outgoing(id: id, text: text, sentAt: Moment.date(now)))
        case .retry(let id):
            guard let index = refused.firstIndex(where: { $0.id == id }) else { return [] }
            return post(Outgoing(id: id, text: refused.remove(at: index).text, sentAt: Moment.date(now)))
        case .discard(let id):
            refused.removeAll { $0.id == id }
            return []
        case .read(let sequence):
            isReadPending = sequence == nil && (!list.loading.isLoaded || list.loading.isKept)
            return read(sequence)
        case .earlier: return list.fetchMore()
        case .delete(let id): return [.send("DELETE", "\(path)/messages/\(id.pathSegment)", as: "delete")]
        }
    }

    /// - Parameter sequence: nil for the newest loaded message.
    private func read(_ sequence: Int?) -> [FeatureAction] {
        let sequence = sequence ?? list.stored.last?.sequence ?? 0
        // The count falls only after the service has confirmed it (R-CNT-RT-2).
        guard sequence > readPosition ?? 0 else { return [] }
        return [.send("PUT", "\(path)/read-position", ["sequence": JSON(sequence)], as: "read")]
    }

    private mutating func post(_ message: Outgoing) -> [FeatureAction] {
        guard sending.count < ConversationMachine.sendingMax else {
            return refuse(
                message, ["status": 0, "code": "outbox.full", "detail": "Too many messages are waiting to be sent."])
        }
        tries += 1
        let name = "send-\(tries)"
        var sent = message
        sent.request = name
        sending.append(sent)
        return [
            .send("POST", "\(path)/messages", ["id": .string(message.id), "text": .string(message.text)], as: name),
            .publish(
                name: "message:sending",
                data: JSON(model: message).with(["conversationId": .string(conversationId)])),
        ]
    }

    private mutating func refuse(_ message: Outgoing, _ problem: JSON) -> [FeatureAction] {
        sending.removeAll { $0.id == message.id }
        var kept = message
        (kept.problem, kept.refusal, kept.request) = (Bellhop.Problem(problem), problem, "")
        refused = (refused + [kept]).suffix(ConversationMachine.sendingMax)
        let data: JSON = [
            "id": .string(message.id), "text": .string(message.text), "problem": problem,
            "conversationId": .string(conversationId),
        ]
        return [.publish(name: "message:refused", data: data)]
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        let changes = answer.model(Changes.self)
        if let index = sending.firstIndex(where: { $0.request == name }) {
            guard answer.isTaken else { return refuse(sending[index], answer.problem) }
            let id = sending.remove(at: index).id
            if let message = changes?.message { add([message]) }
            unread = changes?.unread ?? unread
            let sent: JSON = ["conversationId": .string(conversationId), "id": .string(id)]
            // A user that replies has read what came before.
            let reading = changes?.unread ?? 0 > 0 ? read(changes?.message?.sequence ?? 0) : []
            return answer.badgesEvent + [.publish(name: "message:sent", data: sent)] + reading
        }
        if name == "read" || name == "delete" {
            guard answer.isTaken else {
                let data: JSON = [
                    "conversationId": .string(conversationId), "what": .string(name), "problem": answer.problem,
                ]
                return [.publish(name: "conversation:refused", data: data)]
            }
            readPosition = changes?.readPosition ?? readPosition
            unread = changes?.unread ?? unread
            return answer.badgesEvent
        }
        guard !list.takeMore(name, answer), answer.isTaken else { return [] }
        switch name {
        case "conversation": (unread, readPosition, isRemoved) = (changes?.unread, changes?.readPosition, false)
        case "since":
            let page = answer.page(of: Bellhop.Message.self)
            add(page.items)
            if page.next != nil, let last = page.items.last { return [fetchSince(last.sequence)] }
        default: break
        }
        return []
    }

    private func fetchSince(_ sequence: Int) -> FeatureAction {
        .fetch(path: "\(path)/messages?since=\(sequence)&limit=100", as: "since")
    }

    /// Adds messages that are not there yet.
    private mutating func add(_ newer: [Bellhop.Message]) { list.merge(newer.filter { list.find($0.id) == nil }) }

    public struct Snapshot: Sendable, Hashable {
        /// Oldest first.
        public let messages: [Bellhop.Message]
        public let sending: [Outgoing]
        /// Refused messages, to be resent or discarded.
        public let refused: [Outgoing]
        public let unread: Int?
        /// Whether there are older messages.
        public let hasEarlier: Bool
        /// Whether the user is no longer a member.
        public let isRemoved: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public var snapshot: Snapshot {
        Snapshot(
            messages: messages, sending: sending, refused: refused, unread: unread, hasEarlier: hasEarlier,
            isRemoved: isRemoved, isLoaded: isLoaded, problem: Bellhop.Problem(problem))
    }

    private enum CodingKeys: CodingKey {
        case conversationId, messages, sending, refused, unread, readPosition, isLoaded, isRemoved, hasEarlier, problem
    }
}

/// The commands of the user or the app.
public enum ConversationCommand: Sendable, Hashable {
    case send(id: String, text: String)
    /// Sends a refused message again.
    case retry(id: String)
    /// Drops a refused message.
    case discard(id: String)
    case delete(id: String)
    /// - Parameter sequence: nil for the newest loaded message.
    case read(sequence: Int?)
    case earlier
}

private struct MessagesRules: ListRules { typealias Data = ConversationList }

extension ConversationMachine.Outgoing: Codable {
    private enum CodingKeys: String, CodingKey { case id, text, sentAt, refusal = "problem" }

    public init(from decoder: any Decoder) throws {
        let message = try decoder.container(keyedBy: CodingKeys.self)
        let refusal = try message.decodeIfPresent(JSON.self, forKey: .refusal)
        self.init(
            id: try message.decode(String.self, forKey: .id), text: try message.decode(String.self, forKey: .text),
            sentAt: try message.decodeIfPresent(Date.self, forKey: .sentAt),
            problem: refusal.flatMap { Bellhop.Problem($0) }, refusal: refusal)
    }
}

/// The parts of `message:created` that machines need. The members beside the message may be absent.
struct NewMessage: Decodable {
    let conversationId: String
    let message: Bellhop.Message
    let preview: String?
    let order: String?
    let unread: Int?

    init?(_ event: FeatureEvent) {
        guard event.name == "message:created", let arrival = event.data.model(NewMessage.self) else { return nil }
        self = arrival
    }
}

import Realtime
import Rows
import TestSupport
import Threads
import Values

@testable import Service

// MARK: - Requests of the clients

extension EventRouterSimulation {
    /// Sends a request about a client's stream, once the client knows the stream's name.
    private func request(_ client: Int, _ change: (inout Wishes) -> StreamRequest.Kind) {
        guard let session = sessions[client], !session.isOver, session.asked == nil, let id = session.client.streamId
        else { return }
        let waiting = inboxes[session.shard].compactMap { item in
            if case .wishes(let other, let wishes) = item, other === session { wishes } else { nil }
        }
        var wishes = waiting.last ?? session.wishes[session.wishes.count - 1]
        let kind = change(&wishes)
        inboxes[session.shard].append(.wishes(session, wishes))
        replica.requests.ask(id, as: caller(client, tokenId: session.tokenId, wishes.tokenKeys), kind) { _ in }
    }

    func replaceTopics(_ client: Int) {
        request(client) { wishes in
            wishes.topics = Self.topics.filter { _ in number(2) == 0 }
            schedule.tell("\(name(client)) has the topics \(wishes.topics)")
            return .replace(SubscriptionDraft(topics: wishes.topics))
        }
    }

    func replaceTables(_ client: Int) {
        request(client) { wishes in
            wishes.tables = ["", "kind=eq.1"].filter { _ in number(3) > 0 }.map { filter in
                TableSubscription(id: filter, table: "orders", filter: (try? Filter(parsing: filter)) ?? .all)
            }
            schedule.tell("\(name(client)) subscribes to \(wishes.tables.map(\.id))")
            return .replace(SubscriptionDraft(tables: wishes.tables))
        }
    }

    /// Subscribes to tables for the first time, with the rows that changed since the client's position.
    func replaceTablesWithReplay(_ client: Int) {
        guard let session = sessions[client], !session.isOver, session.wishes.allSatisfy(\.tables.isEmpty),
            session.asked == nil, inboxes[session.shard].isEmpty, let id = session.client.streamId,
            let since = Self.received(by: session.client, service.start.log.ids).first?.id
        else { return }
        var wishes = session.wishes[session.wishes.count - 1]
        wishes.tables = [TableSubscription(id: "all", table: "orders")]
        let request = RowsRequest(since: since, wishes: wishes)
        session.asked = request
        let draft = SubscriptionDraft(
            tables: wishes.tables, lastEventID: service.start.log.ids.cursor(since).text)
        let caller = caller(client, tokenId: session.tokenId, wishes.tokenKeys)
        replica.requests.ask(id, as: caller, .replace(draft)) { _ in request.isAnswered.withLock { $0 = true } }
        schedule.tell("\(name(client)) subscribes to rows since \(since - start)")
    }

    func renew(_ client: Int) {
        request(client) { wishes in
            wishes.tokenKeys = tokenKeys(client)
            schedule.tell("\(name(client)) has a token with \(wishes.tokenKeys.sorted())")
            return .renew(caller(client, tokenId: sessions[client]?.tokenId ?? "", wishes.tokenKeys))
        }
    }
}

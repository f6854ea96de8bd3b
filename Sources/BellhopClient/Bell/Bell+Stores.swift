import Foundation

/// A write, before it has an outbox.
struct EarlyWrite: Sendable {
    let method: String
    let path: String
    let body: JSON?
    let key: String
    let headers: [String: String]
    let done: @Sendable (Result<ServiceAnswer, any Error>) -> Void

    /// A new `Idempotency-Key`.
    static var newKey: String { UUID().uuidString.lowercased() }

    var item: OutboxItem {
        OutboxItem(
            key: key, order: "", method: method, path: path, body: body, headers: headers.isEmpty ? nil : headers,
            tried: nil, identity: nil)
    }

    func put(into outbox: Outbox) {
        do {
            try outbox.put(method, path, body, key: key, headers: headers) { [done] in done($0.mapError { $0 }) }
        } catch {
            done(.failure(error))
        }
    }
}

/// The bell as its stores use it.
extension Bell {
    func attach(_ store: some BellStore) { stores[ObjectIdentifier(store)] = store }

    /// Passes on what the device has of a store: its last state, and the writes that wait.
    ///
    /// - Parameter items: The writes; by default all that wait.
    func restore(_ store: any BellStore, _ items: [OutboxItem]? = nil) {
        if let state = store.name.flatMap({ lastState?.find($0) }) { store.take(.restore(state)) }
        let items = items ?? outbox?.ownItems ?? []
        if !items.isEmpty { store.take(.waiting(items)) }
    }

    func detach(_ store: some BellStore) {
        let key = ObjectIdentifier(store)
        stores[key] = nil
        if let name = store.name { lastState?.noteEnd(of: name, store.kept) }
        let (isChange, unanswered) = subscriptions.remove(key)
        CombinedSubscriptions.supersede(unanswered)
        if isChange { changed(topics: true, tables: true) }
    }

    func subscribe(_ store: some BellStore, topics: [String]) {
        subscriptions.set(ObjectIdentifier(store), topics: topics)
        changed(topics: true)
    }

    func subscribe(
        _ store: some BellStore, tables: [JSON], lastEventId: String?,
        answer: @escaping @MainActor (ServiceAnswer) -> Void
    ) {
        CombinedSubscriptions.supersede(subscriptions.set(ObjectIdentifier(store), tables: tables, answer: answer))
        changed(tables: true, lastEventId: lastEventId)
    }

    func changed(topics: Bool = false, tables: Bool = false, lastEventId: String? = nil) {
        guard let line else { return }
        let (allTopics, allTables) = (topics ? subscriptions.topics : nil, tables ? subscriptions.tables : nil)
        // Changes run one after the other; otherwise an older one could win.
        let before = subscribing
        subscribing = Task {
            await before?.value
            await line.subscribe(topics: allTopics, tables: allTables, lastEventId: lastEventId)
        }
    }

    func deliver(_ write: EarlyWrite) {
        if let outbox {
            write.put(into: outbox)
        } else if !isSignedIn {
            write.done(.failure(UnsentWrite(reason: .signedOut, key: write.key)))
        } else if early.count >= 1000 {
            write.done(.failure(UnsentWrite(reason: .full, key: write.key)))
        } else {
            early.append(write)
        }
    }

    /// Delivers an event to the app and to the stores that subscribe to it.
    func publish(_ name: String, _ data: JSON) {
        let event = FeatureEvent(name, data)
        for store in stores.values.map(\.self) where store.localEvents.contains(name) { store.take(.event(event)) }
        yield(Event(name: name, data: data, id: ""))
    }

    func play(_ haptic: Bellhop.Haptic?, _ sound: Bool, key: String, text: NotificationText?) {
        guard let player = options.player, let left = played.take(key, haptic: haptic != nil, sound: sound)
        else { return }
        Task { await player.play(haptic: left.haptic ? haptic : nil, sound: left.sound, text: text) }
    }
}

import Foundation

extension Store where Machine == CountsMachine {
    /// What an own write takes from the counts, once it has succeeded; for writes whose answers do not carry the counts.
    ///
    /// ```swift
    /// try await bell.badges.expect(messages: -2) { try await backend.markThreadRead(id) }
    /// ```
    public func expect<Value>(
        messages: Int = 0, requests: Int = 0, bell: Int = 0, while write: () async throws -> Value
    ) async rethrows -> Value {
        let name = "expected-\(UUID().uuidString)"
        let by: JSON = [
            "messages": .integer(Int64(messages)), "requests": .integer(Int64(requests)),
            "bell": .integer(Int64(bell)),
        ]
        run("expect", ["as": .string(name), "by": by])
        do {
            let value = try await write()
            answered(name, .success(ServiceAnswer(status: 204, headers: [:], body: Data())))
            return value
        } catch {
            answered(name, .failure(error))
            throw error
        }
    }

    /// Asks for the counts, however young they are.
    public func reconcile() { bell.reconcile() }
}

extension Store where Machine == NotificationsMachine {
    @discardableResult public func markSeen(_ id: String) -> Command { change(id, ["seen": true]) }
    @discardableResult public func markUnseen(_ id: String) -> Command { change(id, ["seen": false]) }
    @discardableResult public func markRead(_ id: String) -> Command { change(id, ["read": true]) }
    @discardableResult public func markUnread(_ id: String) -> Command { change(id, ["read": false]) }
    @discardableResult public func archive(_ id: String) -> Command { change(id, ["archived": true]) }
    @discardableResult public func unarchive(_ id: String) -> Command { change(id, ["archived": false]) }
    @discardableResult public func remove(_ id: String) -> Command { run("remove", ["id": .string(id)]) }

    /// All that are shown.
    ///
    /// - Parameters:
    ///   - category: of these alone.
    ///   - id: the newest that is meant, where that is not the newest that is shown.
    @discardableResult public func markAllSeen(category: String? = nil, upTo id: String? = nil) -> Command {
        changeAll(["seen": true], category, id)
    }

    @discardableResult public func markAllRead(category: String? = nil, upTo id: String? = nil) -> Command {
        changeAll(["read": true], category, id)
    }

    @discardableResult public func archiveAll(category: String? = nil, upTo id: String? = nil) -> Command {
        changeAll(["archived": true], category, id)
    }

    /// What is not named stays.
    @discardableResult public func setPreferences(_ wish: Bellhop.PreferencesWish) throws -> Command {
        run("prefer", ["set": try JSON(parsing: Bellhop.encoder.encode(wish))])
    }

    @discardableResult public func endQuietHours() -> Command { run("prefer", ["set": ["quietHours": nil]]) }

    private func change(_ id: String, _ set: JSON) -> Command { run("change", ["id": .string(id), "set": set]) }

    private func changeAll(_ set: JSON, _ category: String?, _ id: String?) -> Command {
        run(
            "changeAll",
            ["set": set, "category": category.map(JSON.string) ?? .null, "upTo": id.map(JSON.string) ?? .null])
    }
}

extension Store where Machine == ConversationsMachine {
    /// Older ones.
    @discardableResult public func loadMore() -> Command { run("more") }
}

extension Store where Machine == ConversationMachine {
    /// As many bytes as a message may have (`conversations.textBytesMax` of `/v1/config`).
    private static var textBytesMax: Int { 4000 }

    /// Shown at once, and sent when it can be.
    ///
    /// - Parameter id: of the app's own: makes repeating it harmless.
    @discardableResult public func send(_ text: String, id: String = UUID().uuidString.lowercased()) throws -> Command {
        let isBlank = text.allSatisfy(\.isWhitespace)
        guard !isBlank, text.utf8.count <= Self.textBytesMax else {
            throw Bellhop.UnusableParameter(name: "text", value: String(text.prefix(40)))
        }
        return run("send", ["id": .string(id), "text": .string(text)])
    }

    /// Up to the newest message that is here, or to the one with that number.
    @discardableResult public func markRead(upTo sequence: Int? = nil) -> Command {
        run("read", ["sequence": sequence.map { .integer(Int64($0)) } ?? .null])
    }

    @discardableResult public func loadEarlier() -> Command { run("earlier") }
    @discardableResult public func delete(_ messageID: String) -> Command { run("delete", ["id": .string(messageID)]) }
    /// Sends again what was refused.
    @discardableResult public func retry(_ messageID: String) -> Command { run("retry", ["id": .string(messageID)]) }
    public func discard(_ messageID: String) { run("discard", ["id": .string(messageID)]) }
}

extension Store where Machine == BookingMachine {
    @discardableResult public func cancel() -> Command { run("change", ["set": ["status": "cancelled"]]) }

    /// Nothing while another change is under way.
    @discardableResult public func change(_ set: Bellhop.ChangeBookingBody) throws -> Command {
        run("change", ["set": try JSON(parsing: Bellhop.encoder.encode(set))])
    }
}

extension Store where Machine == FeedMachine {
    /// What waits behind the banner.
    public func showNew() { run("showNew") }
    @discardableResult public func loadMore() -> Command { run("more") }
    @discardableResult public func like(_ postID: String) -> Command { engage(postID, ["liked": true]) }
    @discardableResult public func unlike(_ postID: String) -> Command { engage(postID, ["liked": false]) }
    @discardableResult public func repost(_ postID: String) -> Command { engage(postID, ["reposted": true]) }
    @discardableResult public func unrepost(_ postID: String) -> Command { engage(postID, ["reposted": false]) }

    private func engage(_ postID: String, _ set: JSON) -> Command {
        run("engage", ["postId": .string(postID), "set": set])
    }
}

extension Store where Machine == DJMachine {
    @discardableResult public func vote(_ vote: DJQueueState.Vote, on trackID: String) -> Command {
        run("vote", ["trackId": .string(trackID), "vote": .string(vote.rawValue)])
    }

    @discardableResult public func add(_ track: Bellhop.AddTrackBody) throws -> Command {
        run("add", ["track": try JSON(parsing: Bellhop.encoder.encode(track))])
    }
}

extension Store where Machine == VisibleRowsMachine {
    /// The rows on the screen now; call it at every step of a scroll.
    public func show(_ ids: [String]) { run("show", ["ids": .array(ids.map(JSON.string))]) }
    public func pause() { run("pause") }
    public func resume() { run("resume") }
    public func stop() { run("stop") }
}

/// A query of the app that is fetched again when it is stale; ends when it is stopped.
@MainActor public struct WatchedQuery {
    let id: String
    let key: InvalidationMachine.Key
    let store: Store<InvalidationMachine>

    /// It is on the screen: what went stale meanwhile is fetched.
    public func show() { store.watch(id, key, isVisible: true) }
    public func hide() { store.watch(id, key, isVisible: false) }

    public func stop() {
        store.bell.features.refetches[id] = nil
        store.isHeld = !store.bell.features.refetches.isEmpty
        store.run("unwatch-query", ["id": .string(id)])
    }
}

extension Store where Machine == InvalidationMachine {
    /// Calls `refetch`, with the reason, whenever the query is stale and on the screen.
    ///
    /// - Parameter key: such as `["leaderboard", "c1"]`; what the service calls stale begins it, or is it.
    public func watch(
        _ key: InvalidationMachine.Key, isVisible: Bool = true, refetch: @escaping @MainActor (String) -> Void
    ) -> WatchedQuery {
        if bell.features.refetching == nil {
            let told = bell.events("query:refetch")
            bell.features.refetching = Task { [weak bell] in
                for await event in told {
                    for id in event.data["ids"].strings {
                        bell?.features.refetches[id]?(event.data["reason"].string ?? "")
                    }
                }
            }
        }
        bell.features.count += 1
        let id = "query-\(bell.features.count)"
        bell.features.refetches[id] = refetch
        isHeld = true
        watch(id, key, isVisible: isVisible)
        return WatchedQuery(id: id, key: key, store: self)
    }

    /// An own change of a row of the app's own database: its echo within two seconds is no news, where the database
    /// does not say whose it was. Where it does, by `X-Client-Id`, this is not needed.
    public func mutated(_ table: String, _ recordID: String) {
        run("mutated", ["table": .string(table), "recordId": .string(recordID)])
    }

    /// At once, whatever is on the screen and whoever made it stale.
    ///
    /// - Parameter key: all queries that begin with it; every query without it.
    public func refetch(_ key: InvalidationMachine.Key = []) {
        run("refetch", ["key": .array(key.map(JSON.string))])
    }

    func watch(_ id: String, _ key: InvalidationMachine.Key, isVisible: Bool) {
        run(
            "watch-query",
            ["id": .string(id), "key": .array(key.map(JSON.string)), "isVisible": .bool(isVisible)])
    }
}

import Foundation

extension Store where Machine == CountsMachine {
    /// Subtracts an own write from the counts once it has succeeded. Use it for writes whose answers do not carry the
    /// counts.
    ///
    /// ```swift
    /// try await bell.badges.expect(messages: -2) { try await backend.markThreadRead(id) }
    /// ```
    public func expect<Value>(
        messages: Int = 0, requests: Int = 0, bell: Int = 0, while write: () async throws -> Value
    ) async rethrows -> Value {
        let name = "expected-\(UUID().uuidString)"
        run(.expect(as: name, by: .init(messages: messages, requests: requests, bell: bell)))
        do {
            let value = try await write()
            answered(name, .success(ServiceAnswer(status: 204, headers: [:], body: Data())))
            return value
        } catch {
            answered(name, .failure(error))
            throw error
        }
    }

    /// Fetches the counts, however recent they are.
    public func reconcile() { bell.reconcile() }
}

extension Store where Machine == NotificationsMachine {
    @discardableResult public func markSeen(_ id: String) -> Command { change(id, .init(seen: true)) }
    @discardableResult public func markUnseen(_ id: String) -> Command { change(id, .init(seen: false)) }
    @discardableResult public func markRead(_ id: String) -> Command { change(id, .init(read: true)) }
    @discardableResult public func markUnread(_ id: String) -> Command { change(id, .init(read: false)) }
    @discardableResult public func archive(_ id: String) -> Command { change(id, .init(archived: true)) }
    @discardableResult public func unarchive(_ id: String) -> Command { change(id, .init(archived: false)) }
    @discardableResult public func remove(_ id: String) -> Command { run(.remove(id: id)) }
    /// Loads the next older notifications, while the snapshot's `hasMore` is true.
    @discardableResult public func loadMore() -> Command { run(.more) }

    /// Marks all shown notifications as seen.
    ///
    /// - Parameters:
    ///   - category: only notifications of this category.
    ///   - id: the newest notification to mark; by default the newest one shown.
    @discardableResult public func markAllSeen(category: String? = nil, upTo id: String? = nil) -> Command {
        changeAll(.init(seen: true), category, id)
    }

    @discardableResult public func markAllRead(category: String? = nil, upTo id: String? = nil) -> Command {
        changeAll(.init(read: true), category, id)
    }

    @discardableResult public func archiveAll(category: String? = nil, upTo id: String? = nil) -> Command {
        changeAll(.init(archived: true), category, id)
    }

    /// Changes the preferences. Fields that are not set keep their values.
    @discardableResult public func setPreferences(_ preferences: Bellhop.PreferencesDraft) throws -> Command {
        run(.prefer(set: try JSON(parsing: Bellhop.encoder.encode(preferences))))
    }

    @discardableResult public func endQuietHours() -> Command { run(.prefer(set: ["quietHours": nil])) }

    private func change(_ id: String, _ set: Bellhop.NotificationStateChange) -> Command {
        run(.change(id: id, set: set))
    }

    private func changeAll(_ set: Bellhop.NotificationStateChange, _ category: String?, _ id: String?) -> Command {
        run(.changeAll(upTo: id, category: category, set: set))
    }
}

extension Store where Machine == ConversationsMachine {
    /// Loads the next older page.
    @discardableResult public func loadMore() -> Command { run(.more) }
}

extension Store where Machine == ConversationMachine {
    /// The longest message in bytes (`conversations.textBytesMax` of `/v1/config`).
    private static var textBytesMax: Int { 4000 }

    /// Shows a message at once, and sends it when the network allows.
    ///
    /// - Parameter id: an id chosen by the app, which makes repeating the call idempotent.
    @discardableResult public func send(_ text: String, id: String = UUID().uuidString.lowercased()) throws -> Command {
        let isBlank = text.allSatisfy(\.isWhitespace)
        guard !isBlank, text.utf8.count <= Self.textBytesMax else {
            throw Bellhop.UnusableParameter(name: "text", value: String(text.prefix(40)))
        }
        return run(.send(id: id, text: text))
    }

    /// Marks messages as read, up to the newest loaded one or up to the given sequence number.
    @discardableResult public func markRead(upTo sequence: Int? = nil) -> Command {
        run(.read(sequence: sequence))
    }

    @discardableResult public func loadEarlier() -> Command { run(.earlier) }
    @discardableResult public func delete(_ messageID: String) -> Command { run(.delete(id: messageID)) }
    /// Resends a refused message.
    @discardableResult public func retry(_ messageID: String) -> Command { run(.retry(id: messageID)) }
    public func discard(_ messageID: String) { run(.discard(id: messageID)) }
}

extension Store where Machine == RequestsMachine {
    @discardableResult public func accept(_ id: String) -> Command { settle(id, .accepted) }
    @discardableResult public func decline(_ id: String) -> Command { settle(id, .declined) }
    /// Takes back an open request of the user.
    @discardableResult public func withdraw(_ id: String) -> Command { settle(id, nil) }
    /// Marks the requests to the user as seen, up to the newest that is shown.
    @discardableResult public func markSeen() -> Command { run(.see) }
    @discardableResult public func loadMore() -> Command { run(.more) }

    /// Asks another user.
    @discardableResult public func ask(_ request: Bellhop.CreateRequestBody) -> Command {
        run(.ask(draft: request))
    }

    private func settle(_ id: String, _ status: Bellhop.UserRequest.Status?) -> Command {
        run(.settle(id: id, status: status))
    }
}

extension Store where Machine == BookingMachine {
    @discardableResult public func cancel() -> Command { run(.change(set: ["status": "cancelled"])) }

    /// Changes the booking. Does nothing while another change is pending.
    @discardableResult public func change(_ set: Bellhop.ChangeBookingBody) throws -> Command {
        run(.change(set: try JSON(parsing: Bellhop.encoder.encode(set))))
    }
}

extension Store where Machine == FeedMachine {
    /// Shows the new posts that wait behind the banner.
    public func showNew() { run(.showNew) }
    @discardableResult public func loadMore() -> Command { run(.more) }
    @discardableResult public func like(_ postID: String) -> Command { engage(postID, .init(liked: true)) }
    @discardableResult public func unlike(_ postID: String) -> Command { engage(postID, .init(liked: false)) }
    @discardableResult public func repost(_ postID: String) -> Command { engage(postID, .init(reposted: true)) }
    @discardableResult public func unrepost(_ postID: String) -> Command { engage(postID, .init(reposted: false)) }

    private func engage(_ postID: String, _ set: FeedMachine.Engagement) -> Command {
        let command = run(.engage(postId: postID, set: set))
        publishCounts(of: postID)
        // The answer confirms or reverts them.
        Task {
            _ = await command.promise?.value
            publishCounts(of: postID)
        }
        return command
    }

    /// Shows the counts in the rows of posts, too.
    private func publishCounts(of postID: String) {
        guard let post = snapshot.posts.first(where: { $0.id == postID }) else { return }
        let counts: JSON = ["likeCount": JSON(post.likeCount), "repostCount": JSON(post.repostCount)]
        let data: JSON = ["postIds": [.string(postID)], "updates": .object([postID: counts])]
        bell.publish("post:engaged", data)
    }
}

extension Store where Machine == DJMachine {
    @discardableResult public func vote(_ vote: DJQueueState.Vote, on trackID: String) -> Command {
        run(.vote(trackId: trackID, vote: vote))
    }

    @discardableResult public func add(_ track: Bellhop.AddTrackBody) -> Command {
        run(.add(track: track))
    }
}

extension Store where Machine == VisibleRowsMachine {
    /// Sets the rows that are on the screen now. Call it at every step of a scroll.
    public func show(_ ids: [String]) { run(.show(ids: ids)) }
    /// Shows the user's own write of a row at once, before its event comes. Rows that are not shown are ignored.
    public func apply(_ row: JSON) { run(.apply(row: row)) }
    public func pause() { run(.pause) }
    public func resume() { run(.resume) }
    public func stop() { run(.stop) }
}

extension Store where Machine == RowsMachine {
    /// Replaces the rows by the rows that the app has fetched. Newer rows of the stream stay.
    public func load(_ rows: [JSON]) { run(.load(rows: rows)) }

    /// Shows the user's own write of a row at once, before its event comes.
    ///
    /// - Parameter row: The changed members, with the column of the ids.
    public func apply(_ row: JSON) { run(.apply(row: row)) }

    /// Replaces the rows by models that the app has fetched. Newer rows of the stream stay.
    public func load(_ rows: [some Encodable]) throws {
        let encoder = JSONEncoder()
        load(try rows.map { try JSON(parsing: encoder.encode($0)) })
    }
}

/// A query of the app that is refetched when it becomes stale. Watching ends when it is stopped.
@MainActor public struct WatchedQuery {
    let id: String
    let key: InvalidationMachine.Key
    let store: Store<InvalidationMachine>

    /// Reports that the query is on the screen: if it became stale meanwhile, it is refetched.
    public func show() { store.watch(id, key, isVisible: true) }
    public func hide() { store.watch(id, key, isVisible: false) }

    public func stop() {
        store.bell.features.refetches[id] = nil
        store.isHeld = !store.bell.features.refetches.isEmpty
        store.run(.unwatchQuery(id: id))
    }
}

/// The data of `query:refetch`.
private struct DueQueries: Decodable {
    let ids: [String]
    let reason: String
}

extension Store where Machine == InvalidationMachine {
    /// Calls `refetch`, with the reason, whenever the query is stale and on the screen.
    ///
    /// - Parameter key: such as `["leaderboard", "c1"]`. A stale key of the service matches if it is a prefix of this
    ///   key.
    public func watch(
        _ key: InvalidationMachine.Key, isVisible: Bool = true, refetch: @escaping @MainActor (String) -> Void
    ) -> WatchedQuery {
        if bell.features.refetching == nil {
            let refetches = bell.events("query:refetch")
            bell.features.refetching = Task { [weak bell] in
                for await event in refetches {
                    guard let due = event.data.model(DueQueries.self) else { continue }
                    for id in due.ids { bell?.features.refetches[id]?(due.reason) }
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

    /// Reports an own change of a row of the app's own database, whose echo is ignored for two seconds. It is only
    /// needed if the database does not report the author by `X-Client-Id`.
    public func mutated(_ table: String, _ recordID: String) {
        run(.mutated(table: table, recordId: recordID))
    }

    /// Refetches immediately, whether or not the queries are visible and whatever made them stale.
    ///
    /// - Parameter key: all queries whose keys begin with it; without it, every query.
    public func refetch(_ key: InvalidationMachine.Key = []) {
        run(.refetch(key: key))
    }

    func watch(_ id: String, _ key: InvalidationMachine.Key, isVisible: Bool) {
        run(.watchQuery(id: id, key: key, isVisible: isVisible))
    }
}

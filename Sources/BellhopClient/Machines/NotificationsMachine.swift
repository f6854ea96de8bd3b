import Foundation

/// A user's newest notifications.
///
/// The service's events update them. The user's own changes show at once, and are reverted if the service refuses them.
/// Each new notification is passed to the app's player as it arrives.
public struct NotificationsMachine: ShownMachine {
    /// The shown notifications, newest first.
    public private(set) var items: [Bellhop.Notification] = []
    public private(set) var preferences = Bellhop.Preferences(sound: true, haptics: true, timeZone: "UTC")
    public private(set) var isLoaded = false
    public private(set) var problem: JSON = .null
    private var list = ListMachine(NotificationsRules())
    private var known: [String] = []
    /// With the members that only a newer service knows, because a change sends all preferences.
    private var storedPreferences = NotificationsMachine.defaults
    private var preferenceWrites: [PreferenceWrite] = []
    private var hasPreferences = false
    /// The stream has sent preferences since they were requested.
    private var hasNewerPreferences = false
    /// Whether older notifications can be loaded.
    public private(set) var hasMore = false
    /// Whether the list need not be filled up.
    private var isWhole = true
    /// Whether a listed notification was dropped, so that the page at `next` would leave a gap.
    private var isCut = false
    private var isMorePending = false
    private var clockAheadMilliseconds = 0

    /// The parts of a notification's data that name a booking.
    private struct BookingData: Decodable {
        let bookingId: String
        let status: String?
    }

    private struct PreferenceWrite: Sendable {
        let name: String
        let set: JSON
        /// Whether it is in the outbox already.
        var isSent = false
    }

    /// The state to keep on the device.
    private struct Kept: Codable, Sendable {
        let items: [Bellhop.Notification]
        let preferences: JSON?
    }

    /// Older notifications beyond this number are not loaded. Without it, endless scrolling would fill the memory.
    private static let loadedMax = 1000
    /// More ids than the service keeps notifications of a user: a notification that arrives again must not sound again.
    private static let knownMax = 1000
    /// Older events that arrive late, after a time offline, do not sound.
    private static let freshMilliseconds = 60_000
    private static let defaults: JSON = ["sound": true, "haptics": true, "quietHours": nil, "timeZone": "UTC"]

    public init() {}

    public mutating func receive(_ input: FeatureInput<NotificationsCommand>, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            self = NotificationsMachine()
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        // A known id is not new, even if the notification was archived or has dropped out of the list.
        if case .event(let event) = input, case .notificationCreated(let item) = event.typed, known.contains(item.id) {
            return []
        }
        let step = list.advance(input, now: now)
        var actions = step.actions
        if step.actions.contains(where: \.isFetch) {
            hasNewerPreferences = false
            actions.append(.fetch(path: "/v1/preferences", as: "preferences"))
        }
        if let answer = step.answer {
            list.take(answer.page())
            list.countMax = NotificationsList.list.storedMax
            remember(list.stored.map(\.id))
            (isWhole, isCut) = (list.next == nil, false)
            ListMachine<NotificationsRules>.applySince(step, to: &self, \.list) { $0.apply($1.event, now: $1.now) }
        }
        switch input {
        case .event(let event): actions += handle(event, now: now)
        case .answer(let name, let status, let body, _):
            actions += answered(name, ClassifiedAnswer(status: status, body: body))
        case .command(let command): actions += self.command(command, now: now)
        case .restore: restore(input.restored())
        case .waiting(let items): for item in items { wait(for: item) }
        default: break
        }
        show()
        // If the user's archiving leaves the list short, older notifications are fetched. A freshly fetched list is
        // complete.
        let isShort = !isWhole && step.answer == nil && items.count < NotificationsList.list.storedMax / 2
        if isShort, !list.loading.isLoading, list.pending.isEmpty {
            isWhole = true
            actions += receive(.refresh, now: now)
        }
        return actions
    }

    // MARK: Kept state

    public var kept: (any Encodable & Sendable)? {
        list.kept.map { Kept(items: $0, preferences: storedPreferences) }
    }

    private mutating func restore(_ kept: Kept?) {
        guard let kept, list.restore(kept.items) else { return }
        remember(kept.items.map(\.id))
        // The preferences are not complete before the service has sent them: sending kept ones could undo a change of
        // another device.
        if let preferences = kept.preferences, !hasPreferences, !hasNewerPreferences { storedPreferences = preferences }
    }

    /// Shows the change of preferences that an earlier start made.
    private mutating func wait(for item: OutboxItem) {
        guard item.match("PUT", "/v1/preferences") != nil else { return }
        preferenceWrites.append(PreferenceWrite(name: item.answerName, set: item.body ?? .null, isSent: true))
    }

    // MARK: Input from the service

    private mutating func handle(_ event: FeatureEvent, now: Int) -> [FeatureAction] {
        switch event.typed {
        case .streamReady(let ready): clockAheadMilliseconds = Moment.milliseconds(ready.serverTime) - now
        case .preferencesUpdate: (storedPreferences, hasNewerPreferences) = (event.data, true)
        case .notificationCreated(let item):
            apply(event, now: now)
            return play(item, now: now)
        case .notificationUpdated(let update):
            apply(event, now: now)
            // Unarchived on another device: the notification is not in the list yet, so it is fetched.
            guard update.state.archived == false, update.ids.contains(where: { list.find($0) == nil }) else { break }
            return list.refresh()
        default: apply(event, now: now)
        }
        return []
    }

    private mutating func apply(_ event: FeatureEvent, now: Int) {
        list.apply(event, now: now)
        switch event.typed {
        case .notificationCreated(let item):
            guard list.find(item.id) == nil else { return }
            if list.stored.count >= list.countMax { (list.next, isCut) = (nil, true) }
            list.merge([item])
            remember([item.id])
        case .notificationRemoved(let removal): remember(removal.ids)
        default: break
        }
    }

    /// Plays the notification, in the foreground and in the background (R-VIS-FR-4.2, R-VIS-FR-4.3).
    private func play(_ item: Bellhop.Notification, now: Int) -> [FeatureAction] {
        let age = now + clockAheadMilliseconds - Moment.milliseconds(item.createdAt)
        guard age <= NotificationsMachine.freshMilliseconds, item.seenAt == nil else { return [] }
        let haptic = preferences.haptics ? item.haptic : nil
        let sound = preferences.sound && item.sound
        guard haptic != nil || sound else { return [] }
        // A booking change arrives as two events; the shared key makes the phone vibrate once for both.
        var key = "notification:\(item.id)"
        if item.category == "booking", let booking = item.data.model(BookingData.self) {
            key = "booking:\(booking.bookingId):\(booking.status ?? "")"
        }
        return [.play(haptic: haptic, sound: sound, key: key)]
    }

    private mutating func remember(_ ids: [String]) {
        known = (known + ids.filter { !known.contains($0) }).suffix(NotificationsMachine.knownMax)
    }

    // MARK: Commands of the user

    private mutating func command(_ command: NotificationsCommand, now: Int) -> [FeatureAction] {
        switch command {
        case .more: return older()
        case .prefer(let set):
            preferenceWrites.append(PreferenceWrite(name: list.newName("change"), set: set))
            return putPreferences()
        case .remove(let id): return list.send("remove", [id], nil, now: now)
        case .change(let id, let set):
            // A change that is already in effect needs no request.
            if let item = items.first(where: { $0.id == id }), item.has(set) { return [] }
            return list.send("change", [id], NotificationsRules.Change(set: set), body: JSON(model: set), now: now)
        case .changeAll(let upTo, let category, let set):
            // Limited to the newest notification on the screen, so that later arrivals are not marked by mistake.
            guard let upTo = upTo ?? items.first?.id else { return [] }
            let change = NotificationsRules.Change(upTo: upTo, category: category, set: set)
            return list.send("changeAll", [], change, body: JSON(model: change), now: now)
        }
    }

    /// Fetches the next older notifications. After one was dropped, the list is fetched first, or there would be a gap.
    private mutating func older() -> [FeatureAction] {
        if isCut, !isMorePending {
            isMorePending = true
            return list.refresh()
        }
        isMorePending = false
        return list.stored.count < NotificationsMachine.loadedMax ? list.fetchMore() : []
    }

    private mutating func lengthen(_ page: LoadedPage<Bellhop.Notification>) {
        list.countMax = NotificationsMachine.loadedMax + page.items.count
        list.merge(page.items.filter { list.find($0.id) == nil })
        remember(page.items.map(\.id))
        (list.countMax, list.next) = (max(NotificationsList.list.storedMax, list.stored.count), page.next)
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        if name == "list", answer.isTaken, isMorePending { return older() }
        if name.hasPrefix("more:") {
            if answer.isTaken, name == "more:\(list.next ?? "")" { lengthen(answer.page()) }
            return []
        }
        if name == "preferences" {
            guard answer.isTaken else { return [] }
            let isFirst = !hasPreferences
            // Preferences that the stream sent since the request are not older than the answer.
            if !hasNewerPreferences { storedPreferences = answer.body }
            hasPreferences = true
            return isFirst && preferenceWrites.contains { !$0.isSent } ? putPreferences() : []
        }
        if let index = preferenceWrites.firstIndex(where: { $0.name == name }) {
            // The last of several queued changes carried the earlier ones too.
            preferenceWrites.removeFirst(index + 1)
            if !answer.isTaken { return [list.refused([], answer)] }
            if !answer.body.isNull { storedPreferences = answer.body }
            return []
        }
        return list.settle(name, answer) ?? []
    }

    /// Sends all preferences in one PUT. They must be loaded first; otherwise the unset ones would be reset to their
    /// defaults.
    private func putPreferences() -> [FeatureAction] {
        guard hasPreferences, let last = preferenceWrites.last else {
            return [.fetch(path: "/v1/preferences", as: "preferences")]
        }
        return [.send("PUT", "/v1/preferences", preferred, as: last.name)]
    }

    // MARK: Display

    private var preferred: JSON {
        preferenceWrites.reduce(storedPreferences) { $0.with($1.set.object ?? [:]) }
    }

    /// Overlays the unanswered changes on the state from the service.
    private mutating func show() {
        items = list.shown.filter { $0.archivedAt == nil }
        preferences = preferred.model() ?? preferences
        (isLoaded, problem) = (list.loading.isLoaded, list.loading.problem)
        hasMore = isCut || list.next != nil && list.stored.count < NotificationsMachine.loadedMax
    }

    /// The newest 50 notifications, and the older ones that were loaded.
    public struct Snapshot: Sendable, Hashable {
        /// Newest first.
        public let items: [Bellhop.Notification]
        public let preferences: Bellhop.Preferences?
        /// Whether older notifications can be loaded.
        public let hasMore: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public var snapshot: Snapshot {
        Snapshot(
            items: items, preferences: preferences, hasMore: hasMore, isLoaded: isLoaded,
            problem: Bellhop.Problem(problem))
    }

    private enum CodingKeys: CodingKey { case items, preferences, hasMore, isLoaded, problem, known, list }
}

/// The commands of the user or the app.
public enum NotificationsCommand: Sendable, Hashable {
    case more
    case change(id: String, set: Bellhop.NotificationStateChange)
    /// Changes all shown notifications up to the newest one shown, or up to this one.
    case changeAll(upTo: String?, category: String?, set: Bellhop.NotificationStateChange)
    case remove(id: String)
    /// Changes the members of the preferences that `set` has; null ends the quiet hours.
    case prefer(set: JSON)
}

private struct NotificationsRules: ListRules {
    typealias Data = NotificationsList

    /// A change of one notification, or of all up to one and of a category.
    struct Change: Codable, Sendable {
        var upTo: String?
        var category: String?
        let set: Bellhop.NotificationStateChange

        init(upTo: String? = nil, category: String? = nil, set: Bellhop.NotificationStateChange) {
            (self.upTo, self.category, self.set) = (upTo, category, set)
        }

        /// Without `set`, the members are the change itself.
        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            let set = try members.decodeIfPresent(Bellhop.NotificationStateChange.self, forKey: .set)
            self.init(
                upTo: try members.decodeIfPresent(String.self, forKey: .upTo),
                category: try members.decodeIfPresent(String.self, forKey: .category),
                set: try set ?? Bellhop.NotificationStateChange(from: decoder))
        }
    }

    func joined(_ newer: Bellhop.Notification, _ held: Bellhop.Notification?) -> Bellhop.Notification? {
        held == nil ? nil : newer
    }

    func changed(_ item: Bellhop.Notification, by change: Change, at: Date) -> Bellhop.Notification {
        item.changed(by: change.set, at: at)
    }

    func overlaid(_ items: [Bellhop.Notification], _ write: PendingWrite<Change>) -> [Bellhop.Notification] {
        guard let change = write.set else { return items }
        let place = items.firstIndex { $0.id == change.upTo }
        return items.enumerated().map { index, item in
            isCovered(change, item, at: index, place: place) ? item.changed(by: change.set, at: write.at) : item
        }
    }

    private func isCovered(_ change: Change, _ item: Bellhop.Notification, at index: Int, place: Int?) -> Bool {
        if let category = change.category, category != item.category { return false }
        // Ids grow with time, so an id that is no longer in the list still defines the order.
        return place.map { index >= $0 } ?? (item.id <= change.upTo ?? "")
    }
}

extension Bellhop.Notification {
    /// Reading or archiving a notification also marks it as seen; clearing `seen` clears both.
    fileprivate func changed(by set: Bellhop.NotificationStateChange, at now: Date) -> Bellhop.Notification {
        if has(set) { return self }
        var item = self
        if set.seen == false { (item.seenAt, item.readAt, item.archivedAt) = (nil, nil, nil) }
        if let read = set.read { item.readAt = read ? readAt ?? now : nil }
        if let archived = set.archived { item.archivedAt = archived ? archivedAt ?? now : nil }
        if [set.seen, set.read, set.archived].contains(true) { item.seenAt = seenAt ?? now }
        return item
    }

    fileprivate func has(_ set: Bellhop.NotificationStateChange) -> Bool {
        [(set.seen, seenAt), (set.read, readAt), (set.archived, archivedAt)].allSatisfy { expected, time in
            expected.map { $0 == (time != nil) } ?? true
        }
    }
}

extension FeatureAction {
    var isFetch: Bool { if case .fetch = self { true } else { false } }
}

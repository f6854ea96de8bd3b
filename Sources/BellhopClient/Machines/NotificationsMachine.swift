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
    private var stored: [Bellhop.Notification] = []
    private var known: [String] = []
    private var pending: [Pending] = []
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
    /// The cursor of the next older page.
    private var next: String?
    /// Whether a listed notification was dropped, so that the page at `next` would leave a gap.
    private var isCut = false
    private var isMorePending = false
    /// The number of notifications that the list may have: more after the user has asked for older ones.
    private var countMax = NotificationsMachine.storedMax
    private var clockAheadMilliseconds = 0
    private var count = 0
    private var loading = Loading()

    /// An unanswered change.
    private struct Pending: Sendable, Encodable {
        let name: String
        var ids: [String]?
        var upTo: String?
        var category: String?
        var set = Bellhop.NotificationStateChange()
        var isRemoval = false
        let at: Date
    }

    /// The parts of a notification's data that name a booking.
    private struct BookingData: Decodable {
        let bookingId: String
        let status: String?
    }

    private struct Confirmed: Decodable { let notification: Bellhop.Notification? }

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

    /// The number of notifications that a device keeps (R-VIS-NFR-1.4), beside the older ones that the user asks for.
    private static let storedMax = 50
    /// Older notifications beyond this number are not loaded. Without it, endless scrolling would fill the memory.
    private static let loadedMax = 1000
    /// More ids than the service keeps notifications of a user: a notification that arrives again must not sound again.
    private static let knownMax = 1000
    /// Older events that arrive late, after a time offline, do not sound.
    private static let freshMilliseconds = 60_000
    private static let defaults: JSON = ["sound": true, "haptics": true, "quietHours": nil, "timeZone": "UTC"]
    private static let plan = Loading.Plan(
        name: "list", path: "/v1/notifications?limit=\(storedMax)",
        events: ["notification:created", "notification:updated", "notification:removed"])

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
        let step = loading.advance(input, NotificationsMachine.plan, now: now)
        var actions = step.actions
        if step.actions.contains(where: \.isFetch) {
            hasNewerPreferences = false
            actions.append(.fetch(path: "/v1/preferences", as: "preferences"))
        }
        if step.isGone { stored = [] }
        if let answer = step.answer {
            let page = answer.page(of: Bellhop.Notification.self)
            stored = page.items
            remember(stored.map(\.id))
            (isWhole, next, isCut) = (page.next == nil, page.next, false)
            countMax = NotificationsMachine.storedMax
            for event in step.since { apply(event.event, now: event.now) }
        }
        switch input {
        case .event(let event): actions += handle(event, now: now)
        case .answer(let name, let status, let body, _):
            actions += answered(name, ClassifiedAnswer(status: status, body: body))
        case .command(let command): actions += self.command(command, now: now)
        case .restore: restore(input.restored())
        case .waiting(let items): for item in items { wait(for: item, now: now) }
        default: break
        }
        show()
        // If the user's archiving leaves the list short, older notifications are fetched. A freshly fetched list is
        // complete.
        let isShort = !isWhole && step.answer == nil && items.count < NotificationsMachine.storedMax / 2
        if isShort, !loading.isLoading, pending.isEmpty {
            isWhole = true
            actions += receive(.refresh, now: now)
        }
        return actions
    }

    // MARK: Kept state

    public var kept: (any Encodable & Sendable)? {
        guard loading.isLoaded else { return nil }
        return Kept(items: Array(stored.prefix(NotificationsMachine.storedMax)), preferences: storedPreferences)
    }

    private mutating func restore(_ kept: Kept?) {
        guard let kept, loading.restore() else { return }
        let newer = Set(stored.map(\.id))
        stored = Array((stored + kept.items.filter { !newer.contains($0.id) }).prefix(NotificationsMachine.storedMax))
        remember(kept.items.map(\.id))
        // The preferences are not complete before the service has sent them: sending kept ones could undo a change of
        // another device.
        if let preferences = kept.preferences, !hasPreferences, !hasNewerPreferences { storedPreferences = preferences }
    }

    /// Shows the change of a write that an earlier start made.
    private mutating func wait(for item: OutboxItem, now: Int) {
        let (name, body) = (item.answerName, item.body ?? .null)
        let set = body.model(Bellhop.NotificationStateChange.self)
        let at = item.createdAt ?? Moment.date(now)
        if item.match("PUT", "/v1/preferences") != nil {
            preferenceWrites.append(PreferenceWrite(name: name, set: body, isSent: true))
        } else if item.match("PATCH", "/v1/notifications") != nil {
            guard let all = body.model(Bellhop.ChangeNotificationsBody.self) else { return }
            pending.append(Pending(name: name, upTo: all.upTo, category: all.category, set: all.set, at: at))
        } else if let ids = item.match("PATCH", "/v1/notifications/*"), let set {
            pending.append(Pending(name: name, ids: ids, set: set, at: at))
        } else if let ids = item.match("DELETE", "/v1/notifications/*") {
            pending.append(Pending(name: name, ids: ids, isRemoval: true, at: at))
        }
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
            let held = Set(stored.map(\.id))
            guard update.state.archived == false, !held.isSuperset(of: update.ids) else { break }
            return loading.refresh(NotificationsMachine.plan)
        default: apply(event, now: now)
        }
        return []
    }

    private mutating func apply(_ event: FeatureEvent, now: Int) {
        switch event.typed {
        case .notificationCreated(let item):
            guard !stored.contains(where: { $0.id == item.id }) else { return }
            let all = (stored + [item]).sorted { $0.id > $1.id }
            if all.count > countMax { (next, isCut) = (nil, true) }
            stored = Array(all.prefix(countMax))
            remember([item.id])
        case .notificationUpdated(let update):
            let change = Pending(name: "", ids: update.ids, set: update.state, at: Moment.date(now))
            stored = NotificationsMachine.overlaid(stored, change)
        case .notificationRemoved(let removal):
            stored.removeAll { removal.ids.contains($0.id) }
            remember(removal.ids)
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
        let name = "change-\(count + 1)"
        let at = Moment.date(now)
        switch command {
        case .more: return older()
        case .prefer(let set):
            preferenceWrites.append(PreferenceWrite(name: name, set: set))
            count += 1
            return putPreferences()
        case .remove(let id):
            note(Pending(name: name, ids: [id], isRemoval: true, at: at))
            return [.send("DELETE", "/v1/notifications/\(id.pathSegment)", as: name)]
        case .change(let id, let set):
            // A change that is already in effect needs no request.
            if let item = items.first(where: { $0.id == id }), item.has(set) { return [] }
            note(Pending(name: name, ids: [id], set: set, at: at))
            return [.send("PATCH", "/v1/notifications/\(id.pathSegment)", JSON(model: set), as: name)]
        case .changeAll(let upTo, let category, let set):
            // Limited to the newest notification on the screen, so that later arrivals are not marked by mistake.
            guard let upTo = upTo ?? items.first?.id else { return [] }
            note(Pending(name: name, upTo: upTo, category: category, set: set, at: at))
            let body = Bellhop.ChangeNotificationsBody(upTo: upTo, category: category, set: set)
            return [.send("PATCH", "/v1/notifications", JSON(model: body), as: name)]
        }
    }

    private mutating func note(_ change: Pending) {
        pending.append(change)
        count += 1
    }

    /// Fetches the next older notifications. After one was dropped, the list is fetched first, or there would be a gap.
    private mutating func older() -> [FeatureAction] {
        if isCut, !isMorePending {
            isMorePending = true
            return loading.refresh(NotificationsMachine.plan)
        }
        isMorePending = false
        guard let next, stored.count < NotificationsMachine.loadedMax else { return [] }
        let path = "\(NotificationsMachine.plan.path)&cursor=\(next.pathSegment)"
        return [.fetch(path: path, as: "more:\(next)")]
    }

    private mutating func lengthen(_ page: LoadedPage<Bellhop.Notification>) {
        let ids = Set(stored.map(\.id))
        stored += page.items.filter { !ids.contains($0.id) }
        remember(page.items.map(\.id))
        (countMax, next) = (max(countMax, stored.count), page.next)
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        if name == "list", answer.isTaken, isMorePending { return older() }
        if name.hasPrefix("more:") {
            if answer.isTaken, name == "more:\(next ?? "")" { lengthen(answer.page()) }
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
            if !answer.isTaken { return [NotificationsMachine.refused([], answer)] }
            if !answer.body.isNull { storedPreferences = answer.body }
            return []
        }
        guard let index = pending.firstIndex(where: { $0.name == name }) else { return [] }
        var change = pending.remove(at: index)
        let isGone = answer.status == 404 && change.ids != nil
        guard answer.isTaken || isGone else { return [NotificationsMachine.refused(change.ids ?? [], answer)] }
        if !isGone, let newer = answer.model(Confirmed.self)?.notification {
            stored = stored.map { $0.id == newer.id ? newer : $0 }
        } else {
            change.isRemoval = change.isRemoval || isGone
            stored = NotificationsMachine.overlaid(stored, change)
        }
        return answer.badgesEvent
    }

    /// Sends all preferences in one PUT. They must be loaded first; otherwise the unset ones would be reset to their
    /// defaults.
    private func putPreferences() -> [FeatureAction] {
        guard hasPreferences, let last = preferenceWrites.last else {
            return [.fetch(path: "/v1/preferences", as: "preferences")]
        }
        return [.send("PUT", "/v1/preferences", preferred, as: last.name)]
    }

    private static func refused(_ ids: [String], _ answer: ClassifiedAnswer) -> FeatureAction {
        .publish(name: "notifications:refused", data: ["ids": .array(ids.map(JSON.string)), "problem": answer.problem])
    }

    // MARK: Display

    private var preferred: JSON {
        preferenceWrites.reduce(storedPreferences) { $0.with($1.set.object ?? [:]) }
    }

    /// Overlays the unanswered changes on the state from the service.
    private mutating func show() {
        items = pending.reduce(stored, NotificationsMachine.overlaid).filter { $0.archivedAt == nil }
        preferences = preferred.model() ?? preferences
        (isLoaded, problem) = (loading.isLoaded, loading.problem)
        hasMore = isCut || next != nil && stored.count < NotificationsMachine.loadedMax
    }

    private static func overlaid(_ items: [Bellhop.Notification], _ change: Pending) -> [Bellhop.Notification] {
        if change.isRemoval { return items.filter { !(change.ids ?? []).contains($0.id) } }
        let place = items.firstIndex { $0.id == change.upTo }
        return items.enumerated().map { index, item in
            isCovered(change, item, at: index, place: place) ? item.changed(by: change.set, at: change.at) : item
        }
    }

    private static func isCovered(_ change: Pending, _ item: Bellhop.Notification, at index: Int, place: Int?) -> Bool {
        if let ids = change.ids { return ids.contains(item.id) }
        if let category = change.category, category != item.category { return false }
        // Ids grow with time, so an id that is no longer in the list still defines the order.
        return place.map { index >= $0 } ?? (item.id <= change.upTo ?? "")
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

    private enum CodingKeys: CodingKey { case items, preferences, hasMore, isLoaded, problem, stored, known, pending }
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

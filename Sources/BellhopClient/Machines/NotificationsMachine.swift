/// A user's newest notifications.
///
/// The service's events update them. The user's own changes show at once, and are reverted if the service refuses them.
/// Each new notification is passed to the app's player as it arrives.
public struct NotificationsMachine: FeatureMachine {
    /// The shown notifications, newest first.
    public private(set) var items: [JSON] = []
    public private(set) var preferences = NotificationsMachine.defaults
    public private(set) var isLoaded = false
    public private(set) var problem: JSON = .null
    private var stored: [JSON] = []
    private var known: [String] = []
    private var pending: [Pending] = []
    private var storedPreferences = NotificationsMachine.defaults
    private var preferenceWrites: [PreferenceWrite] = []
    private var hasPreferences = false
    /// The stream has sent preferences since they were requested.
    private var hasNewerPreferences = false
    private var hasMore = false
    private var clockAheadMilliseconds = 0
    private var count = 0
    private var loading = Loading()

    /// An unanswered change.
    private struct Pending: Sendable {
        let name: String
        var ids: [String]?
        var upTo: String?
        var category: String?
        var set: JSON = .null
        var isRemoval = false
        let at: String
    }

    private struct PreferenceWrite: Sendable {
        let name: String
        let set: JSON
    }

    /// The number of notifications that a device keeps (R-VIS-NFR-1.4).
    private static let storedMax = 50
    /// More ids than the service keeps notifications of a user: a notification that arrives again must not sound again.
    private static let knownMax = 1000
    /// Older events that arrive late, after a time offline, do not sound.
    private static let freshMilliseconds = 60_000
    private static let defaults: JSON = ["sound": true, "haptics": true, "quietHours": nil, "timeZone": "UTC"]
    private static let plan = Loading.Plan(
        name: "list", path: "/v1/notifications?limit=\(storedMax)",
        events: ["notification:created", "notification:updated", "notification:removed"])

    public init() {}

    public mutating func receive(_ input: FeatureInput, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            self = NotificationsMachine()
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        // A known id is not new, even if the notification was archived or has dropped out of the list.
        if case .event("notification:created", let data, _) = input, known.contains(data["id"].string ?? "") {
            return []
        }
        let step = loading.advance(input, NotificationsMachine.plan, now: now)
        var actions = step.actions
        if step.actions.contains(where: \.isFetch) {
            hasNewerPreferences = false
            actions.append(.fetch(path: "/v1/preferences", as: "preferences"))
        }
        if let body = step.body {
            stored = body["items"].array ?? []
            remember(stored.compactMap { $0["id"].string })
            hasMore = !body["next"].isNull
            for event in step.since { apply(event.name, event.data, now: event.now) }
        }
        switch input {
        case .event(let name, let data, _): actions += handle(name, data, now: now)
        case .answer(let name, let status, let body, _):
            actions += answered(name, ClassifiedAnswer(status: status, body: body))
        case .command(let name, let arguments): actions += command(name, arguments, now: now)
        default: break
        }
        show()
        // If the user's archiving leaves the list short, older notifications are fetched. A freshly fetched list is
        // complete.
        let isShort = hasMore && step.body == nil && items.count < NotificationsMachine.storedMax / 2
        if isShort, !loading.isLoading, pending.isEmpty {
            hasMore = false
            actions += receive(.command("refresh", .null), now: now)
        }
        return actions
    }

    // MARK: Input from the service

    private mutating func handle(_ name: String, _ data: JSON, now: Int) -> [FeatureAction] {
        if name == "stream:ready" {
            clockAheadMilliseconds = Moment.milliseconds(data["serverTime"].string).map { $0 - now } ?? 0
            return []
        }
        if name == "preferences:update" {
            (storedPreferences, hasNewerPreferences) = (data, true)
            return []
        }
        apply(name, data, now: now)
        if name == "notification:created" { return play(data, now: now) }
        // Unarchived on another device: the notification is not in the list yet, so it is fetched.
        guard name == "notification:updated", data["state"]["archived"].bool == false,
            data["ids"].strings.contains(where: { id in !stored.contains { $0["id"].string == id } })
        else { return [] }
        return loading.advance(.command("refresh", .null), NotificationsMachine.plan, now: now).actions
    }

    private mutating func apply(_ name: String, _ data: JSON, now: Int) {
        let ids = data["ids"].strings
        switch name {
        case "notification:created":
            guard let id = data["id"].string, !stored.contains(where: { $0["id"].string == id }) else { return }
            stored = (stored + [data]).sorted { ($0["id"].string ?? "") > ($1["id"].string ?? "") }
            stored = Array(stored.prefix(NotificationsMachine.storedMax))
            remember([id])
        case "notification:updated":
            let change = Pending(name: "", ids: ids, set: data["state"], at: Moment.text(now))
            stored = NotificationsMachine.overlaid(stored, change)
        case "notification:removed":
            stored.removeAll { ids.contains($0["id"].string ?? "") }
            remember(ids)
        default: break
        }
    }

    /// Plays the notification, in the foreground and in the background (R-VIS-FR-4.2, R-VIS-FR-4.3).
    private func play(_ item: JSON, now: Int) -> [FeatureAction] {
        let age = Moment.milliseconds(item["createdAt"].string).map { now + clockAheadMilliseconds - $0 } ?? 0
        guard age <= NotificationsMachine.freshMilliseconds, item["seenAt"].isNull else { return [] }
        let haptic = preferences["haptics"].bool == false ? .null : item["haptic"]
        let sound = preferences["sound"].bool != false && item["sound"].bool == true
        guard haptic.isPresent || sound else { return [] }
        // A booking change arrives as two events; the shared key makes the phone vibrate once for both.
        var key = "notification:\(item["id"].string ?? "")"
        if item["category"].string == "booking", let booking = item["data"]["bookingId"].string {
            key = "booking:\(booking):\(item["data"]["status"].string ?? "")"
        }
        return [.play(haptic: haptic, sound: sound, key: key)]
    }

    private mutating func remember(_ ids: [String]) {
        known = (known + ids.filter { !known.contains($0) }).suffix(NotificationsMachine.knownMax)
    }

    // MARK: Commands of the user

    private mutating func command(_ command: String, _ arguments: JSON, now: Int) -> [FeatureAction] {
        guard ["change", "changeAll", "remove", "prefer"].contains(command) else { return [] }
        let name = "change-\(count + 1)"
        let at = Moment.text(now)
        let id = arguments["id"].string ?? ""
        let place = "/v1/notifications/\(id.pathSegment)"
        switch command {
        case "prefer":
            preferenceWrites.append(PreferenceWrite(name: name, set: arguments["set"]))
            count += 1
            return putPreferences()
        case "remove":
            note(Pending(name: name, ids: [id], isRemoval: true, at: at))
            return [.send("DELETE", place, as: name)]
        case "change":
            // A change that is already in effect needs no request.
            if let item = items.first(where: { $0["id"].string == id }),
                NotificationsMachine.hasState(item, arguments["set"])
            {
                return []
            }
            note(Pending(name: name, ids: [id], set: arguments["set"], at: at))
            return [.send("PATCH", place, arguments["set"], as: name)]
        default:
            // Limited to the newest notification on the screen, so that later arrivals are not marked by mistake.
            guard let upTo = arguments["upTo"].string ?? items.first?["id"].string else { return [] }
            let category = arguments["category"].string
            var body: [String: JSON] = ["upTo": .string(upTo), "set": arguments["set"]]
            if let category { body["category"] = .string(category) }
            note(Pending(name: name, upTo: upTo, category: category, set: arguments["set"], at: at))
            return [.send("PATCH", "/v1/notifications", .object(body), as: name)]
        }
    }

    private mutating func note(_ change: Pending) {
        pending.append(change)
        count += 1
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        if name == "preferences" {
            guard answer.isTaken else { return [] }
            let isFirst = !hasPreferences
            // Preferences that the stream sent since the request are not older than the answer.
            if !hasNewerPreferences { storedPreferences = answer.body }
            hasPreferences = true
            return isFirst && !preferenceWrites.isEmpty ? putPreferences() : []
        }
        if let index = preferenceWrites.firstIndex(where: { $0.name == name }) {
            // The last of several queued wishes carried the earlier ones too.
            preferenceWrites.removeFirst(index + 1)
            if !answer.isTaken { return [NotificationsMachine.refused([], answer)] }
            if !answer.body.isNull { storedPreferences = answer.body }
            return []
        }
        guard let index = pending.firstIndex(where: { $0.name == name }) else { return [] }
        var change = pending.remove(at: index)
        let isGone = answer.status == 404 && change.ids != nil
        guard answer.isTaken || isGone else { return [NotificationsMachine.refused(change.ids ?? [], answer)] }
        let newer = answer.body["notification"]
        if newer.isNull || isGone {
            change.isRemoval = change.isRemoval || isGone
            stored = NotificationsMachine.overlaid(stored, change)
        } else {
            stored = stored.map { $0["id"] == newer["id"] ? newer : $0 }
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
        .tell(name: "notifications:refused", data: ["ids": .array(ids.map(JSON.string)), "problem": answer.problem])
    }

    // MARK: Display

    private var preferred: JSON {
        preferenceWrites.reduce(storedPreferences) { $0.with($1.set.object ?? [:]) }
    }

    /// Overlays the unanswered changes on the state from the service.
    private mutating func show() {
        items = pending.reduce(stored, NotificationsMachine.overlaid).filter { $0["archivedAt"].isNull }
        preferences = preferred
        (isLoaded, problem) = (loading.isLoaded, loading.problem)
    }

    private static func overlaid(_ items: [JSON], _ change: Pending) -> [JSON] {
        if change.isRemoval { return items.filter { !(change.ids ?? []).contains($0["id"].string ?? "") } }
        let place = items.firstIndex { $0["id"].string == change.upTo }
        return items.enumerated().map { index, item in
            isCovered(change, item, index, place) ? changed(item, change.set, change.at) : item
        }
    }

    private static func isCovered(_ change: Pending, _ item: JSON, _ index: Int, _ place: Int?) -> Bool {
        let id = item["id"].string ?? ""
        if let ids = change.ids { return ids.contains(id) }
        if let category = change.category, category != item["category"].string { return false }
        // Ids grow with time, so an id that is no longer in the list still defines the order.
        return place.map { index >= $0 } ?? (id <= change.upTo ?? "")
    }

    /// Reading or archiving a notification also marks it as seen; clearing `seen` clears both.
    private static func changed(_ item: JSON, _ set: JSON, _ at: String) -> JSON {
        if hasState(item, set) { return item }
        var times = ["seenAt": item["seenAt"], "readAt": item["readAt"], "archivedAt": item["archivedAt"]]
        if set["seen"].bool == false { times = ["seenAt": .null, "readAt": .null, "archivedAt": .null] }
        for (name, time) in [("read", "readAt"), ("archived", "archivedAt")] {
            if set[name].bool == false { times[time] = .null }
            if set[name].bool == true, item[time].isNull { times[time] = .string(at) }
        }
        let isSeen = ["seen", "read", "archived"].contains { set[$0].bool == true }
        if isSeen, item["seenAt"].isNull { times["seenAt"] = .string(at) }
        return item.with(times)
    }

    private static func hasState(_ item: JSON, _ set: JSON) -> Bool {
        [("seen", "seenAt"), ("read", "readAt"), ("archived", "archivedAt")].allSatisfy { name, time in
            set[name].bool.map { $0 == !item[time].isNull } ?? true
        }
    }

    // MARK: Encodable

    private enum CodingKeys: CodingKey { case items, preferences, isLoaded, problem, stored, known, pending }

    public func encode(to encoder: any Encoder) throws {
        var state = encoder.container(keyedBy: CodingKeys.self)
        try state.encode(items, forKey: .items)
        try state.encode(preferences, forKey: .preferences)
        try state.encode(isLoaded, forKey: .isLoaded)
        try state.encode(problem, forKey: .problem)
        try state.encode(stored, forKey: .stored)
        try state.encode(known, forKey: .known)
        try state.encode(pending.map(\.name), forKey: .pending)
    }
}

extension FeatureAction {
    var isFetch: Bool { if case .fetch = self { true } else { false } }
}

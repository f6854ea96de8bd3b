import Database
import Domain
import MicroHTTP
import Values

extension NotificationsFeature {
    static let endpoints = [
        Endpoint(.post, "/v1/events", access: .service, needs: .notify, adds: true, countsCalls: true, acceptEvent),
        Endpoint(
            .get, "/v1/notifications", access: .bearer, query: ["category", "state", "priority", "limit", "cursor"],
            showList),
        Endpoint(
            .post, "/v1/notifications", access: .service, needs: .notify, adds: true, countsCalls: true, acceptDraft),
        Endpoint(.patch, "/v1/notifications", access: .bearer, changeMany),
        Endpoint(.get, "/v1/notifications/{id}", access: .bearer, show),
        Endpoint(.patch, "/v1/notifications/{id}", access: .bearer, change),
        Endpoint(.delete, "/v1/notifications/{id}", access: .bearer, remove),
    ]

    // MARK: For backends

    /// `POST /v1/events`: 201 with the created notification. A repeated event id gives 200 with the first notification,
    /// whatever the rest of the request says. An event that requires no notification gives 200 with null.
    private static func acceptEvent(_ call: Call) throws -> Answer {
        let event = try call.body(NotificationEvent.init(reading:))
        guard let draft = event.draft(appName: call.settings.appName) else {
            return .now(Response.json(200) { $0.member("notification", Notification?.none) })
        }
        return .writeTogether(locking: .user(draft.userId), creation.request(draft))
    }

    /// Accepts an event that was written in an app's own transaction, in the form of `POST /v1/events`.
    static func accept(_ members: [String: JSONValue], _ tx: Transaction) throws {
        var fields = Fields(members)
        let event = NotificationEvent(reading: &fields)
        try fields.finish()
        if let draft = event.draft(appName: tx.settings.appName) { try create([draft], tx) }
    }

    private static let creation = RequestBatch<NotificationDraft> { tx, drafts in
        try create(drafts, tx).map(response(to:))
    }

    /// `POST /v1/notifications`: creates a notification without an event.
    private static func acceptDraft(_ call: Call) throws -> Answer {
        let draft = try call.body(NotificationDraft.init(reading:))
        return .writeTogether(locking: .user(draft.userId), creation.request(draft))
    }

    /// Returns the response. It has no Location, because only the user, and not the sender, can read the notification
    /// there.
    private static func response(to outcome: (json: [UInt8], isNew: Bool)) -> Response {
        Response.json(outcome.isNew ? 201 : 200) { $0.member("notification", json: outcome.json) }
    }

    // MARK: For users

    /// The maximum size of a page, which is more than a screen shows.
    private static let pageMax = 100

    private static func showList(_ call: Call) throws -> Answer {
        let query = call.query
        let page = try call.page(limitMax: pageMax)
        let priority = try query.word("priority", Priority.self)
        let state = try query.word("state", ListState.self)
        let category = try query.string("category").map { word in
            guard let category = NotificationCategory(rawValue: word) else {
                throw Failure.invalid("?category", categoryForm)
            }
            return category
        }
        let listing = listing(
            of: call.caller.userId, Filter(category: category, priority: priority, state: state), after: page.after,
            limit: page.rowsMax, visibleTo: call.caller.scope)
        return .query(listing) { rows in page.response(try rows.rows(Notification.init(row:)), by: \.id.text) }
    }

    private static func show(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Notification.self)
        return .read { tx in try response(with: try require(id, tx), tx) }
    }

    /// `PATCH /v1/notifications/{id}`: a state that is already set stays unchanged, and then nothing is published.
    private static func change(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Notification.self)
        let change = try call.body(NotificationStateChange.init(reading:))
        guard let change else { throw Failure.invalid("/seen", "is missing") }
        return .write(locking: .user(call.caller.userId)) { tx in
            let notification = try require(id, tx)
            let changed = try apply(change, to: [notification], tx)
            return try response(with: changed.first ?? notification, tx)
        }
    }

    /// `PATCH /v1/notifications`: changes all notifications up to one that the user has seen on the screen, so that
    /// notifications that arrive meanwhile are not marked as seen.
    private static func changeMany(_ call: Call) throws -> Answer {
        let (last, category, change) = try call.body { fields in
            let (last, category) = (fields.timedID("upTo", Notification.self), readCategory(&fields))
            let change = fields.object("set") { NotificationStateChange(reading: &$0) } ?? nil
            if !fields.has("set") { fields.reject("set", "is missing") }
            return (last, category, change)
        }
        guard let change else { throw Failure.invalid("/set", "must be an object") }
        return .write(locking: .user(call.caller.userId)) { tx in
            let changed = try apply(change, to: try all(upTo: last, in: category, tx), tx)
            return try Response.withBadges(tx) { $0.member("changed", changed.count) }
        }
    }

    private static func remove(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Notification.self)
        return .write(locking: .user(call.caller.userId)) { tx in
            let notification = try require(id, tx)
            try remove(notification, tx)
            // Removing a notification implies having seen it.
            if let requestId = notification.requestId {
                tx.record(.requestNotificationsMarked([requestId], isSeen: true))
            }
            return try Response.withBadges(tx)
        }
    }

    // MARK: Parts

    /// Stores and publishes the notifications that differ, in one event, and adjusts the counts. Returns those in their
    /// new state.
    @discardableResult
    static func apply(
        _ change: NotificationStateChange, to candidates: [Notification], _ tx: Transaction
    ) throws -> [Notification] {
        var changed: [Notification] = []
        var noticed: [Notification] = []
        var badgeChange = BadgeChange.none
        var requests: [ID<UserRequest>] = []
        for before in candidates {
            var after = before
            after.state = before.state.applying(change, at: tx.now)
            guard after.state != before.state else { continue }
            changed.append(after)
            if after.state.isSeen, !before.state.isSeen { noticed.append(after) }
            badgeChange += after.badgeShare + -before.badgeShare
            if let requestId = after.requestId, after.state.isSeen != before.state.isSeen { requests.append(requestId) }
        }
        guard !changed.isEmpty else { return [] }
        try store(change, of: changed, tx)
        publishState(changed.map(\.id), change, of: tx.caller.userId, tx)
        try adjust(badgeChange, of: tx.caller.userId, tx)
        if !noticed.isEmpty { tx.record(.notificationsCleared(noticed, isRemoved: false)) }
        if !requests.isEmpty {
            tx.record(.requestNotificationsMarked(requests, isSeen: change.seen ?? true))
        }
        return changed
    }

    private static func response(with notification: Notification, _ tx: Transaction) throws -> Response {
        try Response.withBadges(tx) { $0.member("notification", notification) }
    }

    private static let categoryForm = "must consist of lower-case letters, digits, - and _"

    private static func readCategory(_ fields: inout Fields) -> NotificationCategory? {
        guard let word = fields.optionalString("category", bytesMax: 64) else { return nil }
        guard let category = NotificationCategory(rawValue: word) else {
            fields.reject("category", categoryForm)
            return nil
        }
        return category
    }
}

// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// Something happened to a user; they are told. For backends.
    ///
    /// The texts come from templates, and of `data` only the members named here are used. Idempotent by user and id: an
    /// event the user had before gets 200 and the first answer, also when its notification was removed since. An event
    /// that changes nothing a user would want to hear of (`changes: []`) makes no notification: 200 and null.
    ///
    /// | type | title | message | priority |
    /// |---|---|---|---|
    /// | `visit.created` | {visitType} Scheduled | Your {visitType} at {hospital} is {status} | HIGH |
    /// | `visit.updated` | {visitType} Updated | Your {visitType} details have been updated | NORMAL |
    /// | `visit.cancelled` | {visitType} Cancelled | Your {visitType} at {hospital} has been cancelled | HIGH |
    /// | `visit.completed` | {visitType} Completed | Your {visitType} at {hospital} is complete | NORMAL |
    /// | `auth.login` | Welcome back! | You've successfully logged in | LOW |
    /// | `auth.signup` | Welcome to {appName}! | Your account has been created successfully | NORMAL |
    /// | `auth.password_changed` | Password Changed | Your password has been updated successfully | HIGH |
    /// | `auth.profile_updated` | Profile Updated | Your profile information has been updated | NORMAL |
    /// | `auth.logout` | Signed Out | You've been logged out successfully | LOW |
    /// | `emergency.accepted` | Help Is on the Way | Your emergency request has been accepted | URGENT |
    /// | `emergency.arriving` | Help Is Arriving | The response to your emergency is arriving now | URGENT |
    /// | `emergency.completed` | Emergency Completed | Your emergency request is complete | HIGH |
    /// | `emergency.cancelled` | Emergency Cancelled | Your emergency request has been cancelled | NORMAL |
    ///
    /// A title that is written with capitals loses them in the message: "Dental Cleaning" is "your dental cleaning".
    /// Without a `hospital` there is no "at", without a `visitType` it is a visit, and without the setting `appName`
    /// just "Welcome!".
    ///
    /// `POST /v1/events`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func postEvent(_ body: Bellhop.Event, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Notified>
    {
        var call = try Bellhop.Call("POST", "/v1/events")
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// The caller's notifications, newest first.
    ///
    /// `GET /v1/notifications`
    ///
    /// - Parameters:
    ///   - state: without it, all but the archived.
    ///   - cursor: the `next` of the page before, with the same filters.
    public func listNotifications(
        category: String? = nil, state: Bellhop.ListNotificationsState? = nil, priority: Bellhop.Priority? = nil,
        limit: Int? = nil, cursor: String? = nil
    ) async throws -> Bellhop.Answer<Bellhop.Page<Bellhop.Notification>> {
        var call = try Bellhop.Call("GET", "/v1/notifications")
        call.query("category", category)
        call.query("state", state)
        call.query("priority", priority)
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// The caller's notifications, newest first. All pages, one after another; `limit` is how many items one of them
    /// has.
    public func notificationPages(
        category: String? = nil, state: Bellhop.ListNotificationsState? = nil, priority: Bellhop.Priority? = nil,
        limit: Int? = nil
    ) -> Bellhop.Pages<Bellhop.Page<Bellhop.Notification>> {
        Bellhop.Pages { cursor in
            try await listNotifications(
                category: category, state: state, priority: priority, limit: limit, cursor: cursor)
        }
    }

    /// A notification that is no event. For backends.
    ///
    /// `POST /v1/notifications`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func postNotification(_ body: Bellhop.NotificationDraft, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Notified>
    {
        var call = try Bellhop.Call("POST", "/v1/notifications")
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// The same for all up to one that was on the screen.
    ///
    /// Nothing that arrives in between is marked by mistake.
    ///
    /// `PATCH /v1/notifications`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func changeNotifications(_ body: Bellhop.ChangeNotificationsBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.ChangedCount>
    {
        var call = try Bellhop.Call("PATCH", "/v1/notifications")
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// One notification, with the counts.
    ///
    /// `GET /v1/notifications/{id}`
    public func getNotification(id: String) async throws -> Bellhop.Answer<Bellhop.NotificationWithBadges> {
        let call = try Bellhop.Call("GET", "/v1/notifications/{id}", ["id": id])
        return try await answer(call)
    }

    /// Seen, read or archived, or the undoing of it.
    ///
    /// What was read or archived counts as seen. Undoing `seen` undoes the others and lights the badge again. Asking
    /// for what is so already changes nothing.
    ///
    /// `PATCH /v1/notifications/{id}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func changeNotification(id: String, _ body: Bellhop.NotificationStateChange, idempotencyKey: String? = nil)
        async throws -> Bellhop.Answer<Bellhop.NotificationWithBadges>
    {
        var call = try Bellhop.Call("PATCH", "/v1/notifications/{id}", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Removes it for good, with its badge.
    ///
    /// `DELETE /v1/notifications/{id}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func deleteNotification(id: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.BadgesAfter>
    {
        var call = try Bellhop.Call("DELETE", "/v1/notifications/{id}", ["id": id])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// How the caller wants to be reached.
    ///
    /// `GET /v1/preferences`
    public func getPreferences() async throws -> Bellhop.Answer<Bellhop.Preferences> {
        let call = try Bellhop.Call("GET", "/v1/preferences")
        return try await answer(call)
    }

    /// Replaces all of them; what is left out takes its default.
    ///
    /// Preferences silence, and never drop a notification. Quiet hours do not hold back URGENT.
    ///
    /// `PUT /v1/preferences`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func replacePreferences(_ body: Bellhop.PreferencesWish, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Preferences>
    {
        var call = try Bellhop.Call("PUT", "/v1/preferences")
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }
}

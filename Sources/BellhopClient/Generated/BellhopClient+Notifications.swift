// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// Create an event
    ///
    /// Requires a service token. Turns the event into a notification for the user. The texts come from templates; the
    /// templates use only the members of `data` that are listed here.
    ///
    /// The call is idempotent by user and event id. A repeated event returns 200 and the first answer, even if its
    /// notification has been removed. An event without a relevant change (`changes: []`) creates no notification and
    /// returns 200 with null.
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
    /// In a message, a `visitType` in title case becomes lower case: "Dental Cleaning" becomes "your dental cleaning".
    /// Without a `hospital`, the message omits "at". Without a `visitType`, the text says "visit". Without the setting
    /// `appName`, the title of `auth.signup` is "Welcome!".
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

    /// List notifications
    ///
    /// Lists the caller's notifications, the newest first.
    ///
    /// `GET /v1/notifications`
    ///
    /// - Parameters:
    ///   - category: only notifications of this category.
    ///   - state: state to filter by. By default, all notifications that are not archived.
    ///   - priority: only notifications of this priority.
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
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

    /// List notifications, page by page; `limit` is the number of items on a page.
    public func notificationPages(
        category: String? = nil, state: Bellhop.ListNotificationsState? = nil, priority: Bellhop.Priority? = nil,
        limit: Int? = nil
    ) -> Bellhop.Pages<Bellhop.Page<Bellhop.Notification>> {
        Bellhop.Pages { cursor in
            try await listNotifications(
                category: category, state: state, priority: priority, limit: limit, cursor: cursor)
        }
    }

    /// Create a notification
    ///
    /// Requires a service token. Creates a notification with your own title and text, without an event.
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

    /// Update notifications in bulk
    ///
    /// Changes the state of all notifications up to `upTo`. Notifications that arrive later stay as they are.
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

    /// Get a notification
    ///
    /// Returns the notification and the caller's current counts.
    ///
    /// `GET /v1/notifications/{id}`
    public func getNotification(id: String) async throws -> Bellhop.Answer<Bellhop.NotificationWithBadges> {
        let call = try Bellhop.Call("GET", "/v1/notifications/{id}", ["id": id])
        return try await answer(call)
    }

    /// Update a notification's state
    ///
    /// Marking a notification as read or archived also marks it as seen. `seen: false` also clears `read` and
    /// `archived`, and the notification counts in the badge again. Setting a state that already holds changes nothing.
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

    /// Delete a notification
    ///
    /// Deletes the notification permanently and removes it from the badge.
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

    /// Get preferences
    ///
    /// Returns how the caller wants to receive notifications: sound, haptics, quiet hours and time zone.
    ///
    /// `GET /v1/preferences`
    public func getPreferences() async throws -> Bellhop.Answer<Bellhop.Preferences> {
        let call = try Bellhop.Call("GET", "/v1/preferences")
        return try await answer(call)
    }

    /// Replace preferences
    ///
    /// Replaces all preferences of the caller. Omitted members take their defaults. Preferences can silence a
    /// notification but never drop it. Quiet hours do not silence URGENT notifications.
    ///
    /// `PUT /v1/preferences`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func replacePreferences(_ body: Bellhop.PreferencesDraft, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Preferences>
    {
        var call = try Bellhop.Call("PUT", "/v1/preferences")
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }
}

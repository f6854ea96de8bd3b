import Values

/// The notifications that users receive about requests. All have the category `request`. The requirements specify
/// no texts for them; these are our own.
///
/// The notification of an open request lights no badge, because its request does. The notification of an answer lights
/// the bell.
public enum RequestNotification {
    /// Returns the draft for the recipient of an open request, or for the requester of an answered one.
    public static func draft(_ request: UserRequest) -> NotificationDraft {
        let what = name(request.kind)
        let (title, message, priority): (String, String, Priority) =
            switch request.status {
            case .open: ("\(what) Request", asking(request), .normal)
            case .accepted: ("\(what) Request Accepted", "Your \(what.lowercased()) request was accepted", .normal)
            case .declined: ("\(what) Request Declined", "Your \(what.lowercased()) request was declined", .low)
            }
        return NotificationDraft(
            userId: request.status == .open ? request.toUserId : request.fromUserId, eventId: eventId(request),
            type: NotificationType(for: .request), category: .request, priority: priority, title: title,
            message: message,
            data: EncodedJSON(.object(data(request))), requestId: request.status == .open ? request.id : nil)
    }

    /// Returns the event id of the notification about a request's current status.
    public static func eventId(_ request: UserRequest) -> String {
        "request:\(request.id.text):\(request.status.rawValue)"
    }

    private static func data(_ request: UserRequest) -> [String: JSONValue] {
        var data: [String: JSONValue] = [
            "requestId": .string(request.id.text), "kind": .string(request.kind.rawValue),
            "status": .string(request.status.rawValue), "fromUserId": .string(request.fromUserId.text),
            "toUserId": .string(request.toUserId.text),
        ]
        data["aboutId"] = request.aboutId.map { .string($0) }
        return data
    }

    private static func name(_ kind: UserRequest.Kind) -> String {
        switch kind {
        case .follow: "Follow"
        case .friend: "Friend"
        case .booking: "Booking"
        case .group: "Group"
        }
    }

    private static func asking(_ request: UserRequest) -> String {
        let who = request.fromName ?? "Someone"
        return switch request.kind {
        case .follow: "\(who) wants to follow you"
        case .friend: "\(who) wants to be your friend"
        case .booking: "\(who) sent you a booking request"
        case .group: "\(who) sent you a group request"
        }
    }
}

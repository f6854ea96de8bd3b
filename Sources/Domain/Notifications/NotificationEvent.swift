import Values

/// An event about a user from another system, the body of `POST /v1/events`: `{id, type, userId, data}`.
///
/// The notification's texts come only from templates, which use only the members of `data` that ``Detail`` names. Other
/// data that a backend sends never reaches a device (R-VIS-NFR-3.2).
public struct NotificationEvent: Sendable, Hashable {
    /// The kinds of events for which the service has a template.
    public enum Kind: String, CaseIterable, Sendable, Hashable {
        case visitCreated = "visit.created"
        case visitUpdated = "visit.updated"
        case visitCancelled = "visit.cancelled"
        case visitCompleted = "visit.completed"
        case login = "auth.login"
        case signup = "auth.signup"
        case passwordChanged = "auth.password_changed"
        case profileUpdated = "auth.profile_updated"
        case logout = "auth.logout"
        case emergencyAccepted = "emergency.accepted"
        case emergencyArriving = "emergency.arriving"
        case emergencyCompleted = "emergency.completed"
        case emergencyCancelled = "emergency.cancelled"
    }

    /// The members of `data` that the templates use; all are optional texts.
    public enum Detail: String, CaseIterable, Sendable, Hashable {
        case visitId, visitType, hospital, status, previousStatus, emergencyId
    }

    public let id: String
    public let kind: Kind
    public let userId: ID<User>
    public let details: [Detail: String]
    /// The names of the changed members, if the sender gives them. An empty set means that nothing changed.
    public let changes: Set<String>?

    /// Bytes of a name or a status. A longer one would not fit a title.
    static let detailBytesMax = 120
    /// A visit has a few dozen members. A longer list is a mistake of the sender.
    static let changesMax = 100

}

extension NotificationEvent {
    public init(reading fields: inout Fields) {
        let id = fields.id("id", NotificationEvent.self).text
        let kind: Kind = fields.word("type")
        let userId: ID<User> = fields.id("userId")
        let members = fields.openObject("data") ?? [:]
        var details = [Detail: String](minimumCapacity: Detail.allCases.count)
        for detail in Detail.allCases {
            guard let text = NotificationEvent.text(members[detail.rawValue], detail, &fields) else { continue }
            details[detail] = text
        }
        let changes = NotificationEvent.changes(members["changes"], &fields)
        self.init(id: id, kind: kind, userId: userId, details: details, changes: changes)
    }

    private static func text(_ value: JSONValue?, _ detail: Detail, _ fields: inout Fields) -> String? {
        guard let value else { return nil }
        var place: String { "data/\(detail.rawValue)" }
        guard case .string(let text) = value else {
            if case .null = value { return nil }
            fields.reject(place, "must be a string, not \(value.typeName)")
            return nil
        }
        guard text.utf8.count <= detailBytesMax else {
            fields.reject(place, "must have at most \(detailBytesMax) bytes, but has \(text.utf8.count)")
            return nil
        }
        guard text.hasNoControls else {
            fields.reject(place, "must not contain control characters")
            return nil
        }
        let trimmed = text.trimmingSpaces
        return trimmed.isEmpty ? nil : trimmed
    }

    /// Reads a list of names, or the member names of an object, whose values are ignored.
    private static func changes(_ value: JSONValue?, _ fields: inout Fields) -> Set<String>? {
        let names: [String]?
        switch value {
        case nil, .null: return nil
        case .object(let members): names = Array(members.keys)
        case .array(let values):
            let texts = values.compactMap { if case .string(let name) = $0 { name } else { nil } }
            names = texts.count == values.count ? texts : nil
        default: names = nil
        }
        guard let names, names.count <= changesMax else {
            fields.reject(
                "data/changes", "must be a list of at most \(changesMax) names, or an object whose keys are names")
            return nil
        }
        return Set(names)
    }
}

extension String {
    fileprivate var trimmingSpaces: String {
        let space = UInt8(ascii: " ")
        guard utf8.first == space || utf8.last == space else { return self }
        let text = utf8.drop { $0 == space }
        guard let last = text.lastIndex(where: { $0 != space }) else { return "" }
        return String(Substring(text[...last]))
    }
}

import Values

extension NotificationEvent {
    /// The notification this event makes; nil if it changed nothing of interest to the user (decision 18).
    ///
    /// - Parameter appName: the product's name as its users know it, in the greeting of a new user; nil greets without.
    public func draft(appName: String?) -> NotificationDraft? {
        let kind = effectiveKind
        if kind == .visitUpdated, changes?.isEmpty == true { return nil }
        let template = template(kind, appName: appName)
        return NotificationDraft(
            userId: userId, eventId: id, category: kind.category, priority: kind.priority, title: template.title,
            message: template.message, data: kind.screen(details), isSeen: kind.isBornSeen)
    }

    /// An update that is also a cancellation or a completion counts as that alone (decision 18).
    ///
    /// It is one if it says so in `status`, unless the sender also says that the status is not what changed.
    var effectiveKind: Kind {
        guard kind == .visitUpdated, let status = details[.status]?.lowercased() else { return kind }
        if let changes, !changes.contains("status") { return kind }
        if details[.previousStatus]?.lowercased() == status { return kind }
        switch status {
        case "cancelled", "canceled": return .visitCancelled
        case "completed": return .visitCompleted
        default: return kind
        }
    }

    private func template(_ kind: Kind, appName: String?) -> (title: String, message: String) {
        let visit = details[.visitType] ?? "Visit"
        let your = "Your \(visit.insideSentence)"
        let place = details[.hospital].map { " at \($0)" } ?? ""
        return switch kind {
        case .visitCreated:
            ("\(visit) Scheduled", "\(your)\(place) is \((details[.status] ?? "scheduled").insideSentence)")
        case .visitUpdated: ("\(visit) Updated", "\(your) details have been updated")
        case .visitCancelled: ("\(visit) Cancelled", "\(your)\(place) has been cancelled")
        case .visitCompleted: ("\(visit) Completed", "\(your)\(place) is complete")
        case .login: ("Welcome back!", "You've successfully logged in")
        case .signup: (appName.map { "Welcome to \($0)!" } ?? "Welcome!", "Your account has been created successfully")
        case .passwordChanged: ("Password Changed", "Your password has been updated successfully")
        case .profileUpdated: ("Profile Updated", "Your profile information has been updated")
        case .logout: ("Signed Out", "You've been logged out successfully")
        case .emergencyAccepted: ("Help Is on the Way", "Your emergency request has been accepted")
        case .emergencyArriving: ("Help Is Arriving", "The response to your emergency is arriving now")
        case .emergencyCompleted: ("Emergency Completed", "Your emergency request is complete")
        case .emergencyCancelled: ("Emergency Cancelled", "Your emergency request has been cancelled")
        }
    }
}

extension NotificationEvent.Kind {
    public var category: NotificationCategory {
        switch self {
        case .visitCreated, .visitUpdated, .visitCancelled, .visitCompleted: .visit
        case .login, .signup, .passwordChanged, .profileUpdated, .logout: .system
        case .emergencyAccepted, .emergencyArriving, .emergencyCompleted, .emergencyCancelled: .emergency
        }
    }

    /// The priority mapping of VIS's appendix.
    public var priority: Priority {
        switch self {
        case .emergencyAccepted, .emergencyArriving: .urgent
        case .visitCreated, .visitCancelled, .passwordChanged, .emergencyCompleted: .high
        case .visitUpdated, .visitCompleted, .signup, .profileUpdated, .emergencyCancelled: .normal
        case .login, .logout: .low
        }
    }

    /// Whether notifications of this kind count as seen from the start: logging in and out is listed, but lights no
    /// badge (decision 17).
    var isBornSeen: Bool { self == .login || self == .logout }

    /// What opens the right screen: identifiers only, because texts can be sensitive.
    fileprivate func screen(_ details: [NotificationEvent.Detail: String]) -> [String: JSONValue] {
        let detail: NotificationEvent.Detail? =
            switch category {
            case .visit: .visitId
            case .emergency: .emergencyId
            default: nil
            }
        guard let detail, let id = details[detail] else { return [:] }
        return [detail.rawValue: .string(id)]
    }
}

extension String {
    /// Words that a title does not write with a capital.
    private static let titleConnectives = ["of", "and", "or", "the", "&"]

    /// As it stands inside a sentence (decision 19): "Dental Cleaning", which is written as a title, as "dental cleaning",
    /// and otherwise the first word alone: "Follow-up for Ada" as "follow-up for Ada". Capitals inside a word stay, as in
    /// "MRI scan" and "McKenzie Therapy".
    ///
    /// By scalars: what a letter is, and whether it is a capital, its first one says.
    fileprivate var insideSentence: String {
        let words = utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map { Substring($0) }
        let isTitle = words.allSatisfy { word in
            guard let first = word.unicodeScalars.first, first.isLetter else { return true }
            return first.isCapital || Self.titleConnectives.contains { word == $0 }
        }
        return words.enumerated().map { index, word in
            guard index == 0 || isTitle else { return String(word) }
            return word.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
                .map { Substring($0).loweredUnlessName }.joined(separator: "-")
        }.joined(separator: " ")
    }
}

extension Substring {
    /// A single letter names something ("Vitamin D", "X-ray"), as does a word with capitals inside.
    fileprivate var loweredUnlessName: String {
        let isSingle = utf8.count == 1 || utf8.first ?? 0 >= 0x80 && count == 1
        return isSingle || unicodeScalars.dropFirst().contains(where: \.isCapital) ? String(self) : lowercased()
    }
}

extension Unicode.Scalar {
    fileprivate var isLetter: Bool { isASCII ? isCapital || ("a"..."z").contains(self) : properties.isAlphabetic }
    fileprivate var isCapital: Bool { isASCII ? ("A"..."Z").contains(self) : properties.isUppercase }
}

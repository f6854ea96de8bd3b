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
    /// By bytes where these say it all: what is beyond ASCII is asked by its scalars, of which a word's first one says
    /// whether it is a letter, and a capital.
    fileprivate var insideSentence: String {
        // Without a capital there is nothing to lower.
        guard utf8.contains(where: { $0.isCapital || $0 >= 0x80 }) else { return self }
        let bytes = Array(utf8)
        var isTitle = true
        bytes[...].forEachPart(separatedBy: UInt8(ascii: " ")) { word, _ in
            guard isTitle, !word.beginsLikeTitle else { return }
            isTitle = Self.titleConnectives.contains { word.elementsEqual($0.utf8) }
        }
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        bytes[...].forEachPart(separatedBy: UInt8(ascii: " ")) { word, isFirst in
            if !isFirst { text.append(UInt8(ascii: " ")) }
            guard isFirst || isTitle else { return text += word }
            word.forEachPart(separatedBy: UInt8(ascii: "-")) { part, isFirst in
                if !isFirst { text.append(UInt8(ascii: "-")) }
                part.appendLoweredUnlessName(to: &text)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// A text's bytes, whole characters of them.
extension ArraySlice<UInt8> {
    /// What stands before, between and behind the separators.
    fileprivate func forEachPart(separatedBy separator: UInt8, _ body: (_ part: Self, _ isFirst: Bool) -> Void) {
        var start = startIndex
        while true {
            let end = self[start...].firstIndex(of: separator) ?? endIndex
            body(self[start..<end], start == startIndex)
            guard end < endIndex else { return }
            start = end + 1
        }
    }

    /// With a capital, or with what is no letter.
    fileprivate var beginsLikeTitle: Bool {
        guard let first else { return true }
        if first < 0x80 { return !first.isLetter || first.isCapital }
        guard let scalar = String(decoding: self, as: UTF8.self).unicodeScalars.first else { return true }
        return !scalar.properties.isAlphabetic || scalar.properties.isUppercase
    }

    /// A single letter names something ("Vitamin D", "X-ray"), as does a word with capitals inside.
    fileprivate func appendLoweredUnlessName(to text: inout [UInt8]) {
        if allSatisfy({ $0 < 0x80 }) {
            let isName = count == 1 || dropFirst().contains(where: \.isCapital)
            for byte in self { text.append(byte.isCapital && !isName ? byte | 0x20 : byte) }
            return
        }
        let word = String(decoding: self, as: UTF8.self)
        let isSingle = first ?? 0 >= 0x80 && word.count == 1
        let isName = isSingle || word.unicodeScalars.dropFirst().contains(where: \.properties.isUppercase)
        text += isName ? self : ArraySlice(word.lowercased().utf8)
    }
}

extension UInt8 {
    /// Of ASCII.
    fileprivate var isCapital: Bool { self &- UInt8(ascii: "A") < 26 }
    fileprivate var isLetter: Bool { (self | 0x20) &- UInt8(ascii: "a") < 26 }
}

import Values

extension NotificationEvent {
    /// Returns the notification of this event; nil if nothing changed that matters to the user (R-18).
    ///
    /// - Parameter appName: The product's name for the greeting of a new user; nil greets without a name.
    public func draft(appName: String?) -> NotificationDraft? {
        let kind = effectiveKind
        if kind == .visitUpdated, changes?.isEmpty == true { return nil }
        let template = template(kind, appName: appName)
        return NotificationDraft(
            userId: userId, eventId: id, type: NotificationType(for: kind.category), category: kind.category,
            priority: kind.priority, title: template.title, message: template.message, data: kind.screen(details),
            isSeen: kind.isCreatedSeen)
    }

    /// The kind that selects the template. An update that is also a cancellation or a completion counts as that alone
    /// (R-18).
    ///
    /// The value of `status` decides this, unless the sender also says that the status did not change.
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

    /// The priority of this kind (R-VIS-FR-2.1 to R-VIS-FR-3.5, R-VIS-APPENDIX).
    public var priority: Priority {
        switch self {
        case .emergencyAccepted, .emergencyArriving: .urgent
        case .visitCreated, .visitCancelled, .passwordChanged, .emergencyCompleted: .high
        case .visitUpdated, .visitCompleted, .signup, .profileUpdated, .emergencyCancelled: .normal
        case .login, .logout: .low
        }
    }

    /// Whether notifications of this kind are created as seen. Logins and logouts are listed, but light no badge
    /// (R-17).
    var isCreatedSeen: Bool { self == .login || self == .logout }

    /// Returns the data that opens the right screen: identifiers only, because texts can be sensitive.
    fileprivate func screen(_ details: [NotificationEvent.Detail: String]) -> EncodedJSON {
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
    /// Words that stay lower-case in a title.
    private static let titleConnectives = ["of", "and", "or", "the", "&"]

    /// The text as it appears inside a sentence (R-19). A text in title case is lowered word by word: "Dental Cleaning"
    /// becomes "dental cleaning". Otherwise only the first word is lowered: "Follow-up for Ada" becomes "follow-up for
    /// Ada". Capitals inside a word stay, as in "MRI scan" and "McKenzie Therapy".
    ///
    /// ASCII is processed by bytes. Other text is processed by Unicode scalars; the first scalar of a word decides
    /// whether it is a letter and a capital.
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

/// Helpers on the UTF-8 bytes of a text. A slice contains whole characters.
extension ArraySlice<UInt8> {
    /// Calls the body for each part between the separators.
    fileprivate func forEachPart(separatedBy separator: UInt8, _ body: (_ part: Self, _ isFirst: Bool) -> Void) {
        var start = startIndex
        while true {
            let end = self[start...].firstIndex(of: separator) ?? endIndex
            body(self[start..<end], start == startIndex)
            guard end < endIndex else { return }
            start = end + 1
        }
    }

    /// Whether the first character is a capital or not a letter.
    fileprivate var beginsLikeTitle: Bool {
        guard let first else { return true }
        if first < 0x80 { return !first.isLetter || first.isCapital }
        guard let scalar = String(decoding: self, as: UTF8.self).unicodeScalars.first else { return true }
        return !scalar.properties.isAlphabetic || scalar.properties.isUppercase
    }

    /// Appends the word in lower case unless it is a name: a single letter ("Vitamin D", "X-ray"), or a word with
    /// capitals inside.
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
    /// Whether the byte is an ASCII capital.
    fileprivate var isCapital: Bool { self &- UInt8(ascii: "A") < 26 }
    fileprivate var isLetter: Bool { (self | 0x20) &- UInt8(ascii: "a") < 26 }
}

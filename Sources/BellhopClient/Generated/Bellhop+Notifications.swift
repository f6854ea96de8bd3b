// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct Event: Codable, Sendable, Hashable {
        public var id: String
        public var type: Event.Kind
        public var userId: String
        /// Other members are ignored and never reach a device.
        public var data: Event.Details?

        public init(id: String, type: Event.Kind, userId: String, data: Event.Details? = nil) {
            self.id = id
            self.type = type
            self.userId = userId
            self.data = data
        }

        public struct Kind: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let visitCreated = Kind(rawValue: "visit.created")
            public static let visitUpdated = Kind(rawValue: "visit.updated")
            public static let visitCancelled = Kind(rawValue: "visit.cancelled")
            public static let visitCompleted = Kind(rawValue: "visit.completed")
            public static let authLogin = Kind(rawValue: "auth.login")
            public static let authSignup = Kind(rawValue: "auth.signup")
            public static let authPasswordChanged = Kind(rawValue: "auth.password_changed")
            public static let authProfileUpdated = Kind(rawValue: "auth.profile_updated")
            public static let authLogout = Kind(rawValue: "auth.logout")
            public static let emergencyAccepted = Kind(rawValue: "emergency.accepted")
            public static let emergencyArriving = Kind(rawValue: "emergency.arriving")
            public static let emergencyCompleted = Kind(rawValue: "emergency.completed")
            public static let emergencyCancelled = Kind(rawValue: "emergency.cancelled")
        }

        /// Other members are ignored and never reach a device.
        public struct Details: Codable, Sendable, Hashable {
            public var visitId: String?
            public var visitType: String?
            public var hospital: String?
            public var status: String?
            public var previousStatus: String?
            public var emergencyId: String?
            /// Names of the changes, as a list or as the keys of an object; at most 100.
            public var changes: JSON?

            public init(
                visitId: String? = nil, visitType: String? = nil, hospital: String? = nil, status: String? = nil,
                previousStatus: String? = nil, emergencyId: String? = nil, changes: JSON? = nil
            ) {
                self.visitId = visitId
                self.visitType = visitType
                self.hospital = hospital
                self.status = status
                self.previousStatus = previousStatus
                self.emergencyId = emergencyId
                self.changes = changes
            }
        }
    }

    public struct Notified: Codable, Sendable, Hashable {
        public internal(set) var notification: Notification?

        public init(notification: Notification? = nil) {
            self.notification = notification
        }
    }

    public struct Notification: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var eventId: String?
        public internal(set) var userId: String
        public internal(set) var type: String
        public internal(set) var category: String
        public internal(set) var priority: Priority
        public internal(set) var title: String
        public internal(set) var message: String
        /// Text for the lock screen, which does not reveal the content.
        public internal(set) var lockScreen: String
        public internal(set) var data: JSON
        public internal(set) var haptic: Haptic?
        public internal(set) var sound: Bool
        public internal(set) var createdAt: Date
        public internal(set) var seenAt: Date?
        public internal(set) var readAt: Date?
        public internal(set) var archivedAt: Date?

        public init(
            id: String, eventId: String? = nil, userId: String, type: String, category: String, priority: Priority,
            title: String, message: String, lockScreen: String, data: JSON, haptic: Haptic? = nil, sound: Bool,
            createdAt: Date, seenAt: Date? = nil, readAt: Date? = nil, archivedAt: Date? = nil
        ) {
            self.id = id
            self.eventId = eventId
            self.userId = userId
            self.type = type
            self.category = category
            self.priority = priority
            self.title = title
            self.message = message
            self.lockScreen = lockScreen
            self.data = data
            self.haptic = haptic
            self.sound = sound
            self.createdAt = createdAt
            self.seenAt = seenAt
            self.readAt = readAt
            self.archivedAt = archivedAt
        }
    }

    public struct Priority: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let low = Priority(rawValue: "LOW")
        public static let normal = Priority(rawValue: "NORMAL")
        public static let high = Priority(rawValue: "HIGH")
        public static let urgent = Priority(rawValue: "URGENT")
    }

    public struct Haptic: Codable, Sendable, Hashable {
        public internal(set) var notification: Haptic.Notification
        public internal(set) var impacts: [String]
        public internal(set) var pulses: Int

        public init(notification: Haptic.Notification, impacts: [String], pulses: Int) {
            self.notification = notification
            self.impacts = impacts
            self.pulses = pulses
        }

        public struct Notification: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let success = Notification(rawValue: "success")
            public static let warning = Notification(rawValue: "warning")
            public static let error = Notification(rawValue: "error")
        }
    }

    public struct ListNotificationsState: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let unseen = ListNotificationsState(rawValue: "unseen")
        public static let unread = ListNotificationsState(rawValue: "unread")
        public static let archived = ListNotificationsState(rawValue: "archived")
        public static let all = ListNotificationsState(rawValue: "all")
    }

    public struct NotificationDraft: Codable, Sendable, Hashable {
        public var userId: String
        public var id: String?
        public var type: String?
        public var category: String
        public var priority: Priority
        public var title: String
        public var message: String
        public var lockScreen: String?
        /// At most 4 KiB as JSON.
        public var data: JSON?

        public init(
            userId: String, id: String? = nil, type: String? = nil, category: String, priority: Priority, title: String,
            message: String, lockScreen: String? = nil, data: JSON? = nil
        ) {
            self.userId = userId
            self.id = id
            self.type = type
            self.category = category
            self.priority = priority
            self.title = title
            self.message = message
            self.lockScreen = lockScreen
            self.data = data
        }
    }

    public struct ChangeNotificationsBody: Codable, Sendable, Hashable {
        /// Id of the newest notification to change.
        public var upTo: String
        public var category: String?
        public var set: NotificationStateChange

        public init(upTo: String, category: String? = nil, set: NotificationStateChange) {
            self.upTo = upTo
            self.category = category
            self.set = set
        }
    }

    /// At least one member is required. `seen: false` cannot be combined with `read: true` or `archived: true`.
    public struct NotificationStateChange: Codable, Sendable, Hashable {
        public var seen: Bool?
        public var read: Bool?
        public var archived: Bool?

        public init(seen: Bool? = nil, read: Bool? = nil, archived: Bool? = nil) {
            self.seen = seen
            self.read = read
            self.archived = archived
        }
    }

    public struct ChangedCount: Codable, Sendable, Hashable {
        public internal(set) var changed: Int
        public internal(set) var badges: Badges

        public init(changed: Int, badges: Badges) {
            self.changed = changed
            self.badges = badges
        }
    }

    public struct NotificationWithBadges: Codable, Sendable, Hashable {
        public internal(set) var notification: Notification
        public internal(set) var badges: Badges

        public init(notification: Notification, badges: Badges) {
            self.notification = notification
            self.badges = badges
        }
    }

    public struct BadgesAfter: Codable, Sendable, Hashable {
        public internal(set) var badges: Badges

        public init(badges: Badges) {
            self.badges = badges
        }
    }

    public struct Preferences: Codable, Sendable, Hashable {
        public internal(set) var sound: Bool
        public internal(set) var haptics: Bool
        public internal(set) var quietHours: QuietHours?
        public internal(set) var timeZone: String

        public init(sound: Bool, haptics: Bool, quietHours: QuietHours? = nil, timeZone: String) {
            self.sound = sound
            self.haptics = haptics
            self.quietHours = quietHours
            self.timeZone = timeZone
        }
    }

    public struct QuietHours: Codable, Sendable, Hashable {
        public internal(set) var start: String
        /// Must differ from `start`.
        public internal(set) var end: String

        public init(start: String, end: String) {
            self.start = start
            self.end = end
        }
    }

    public struct PreferencesDraft: Codable, Sendable, Hashable {
        public var sound: Bool?
        public var haptics: Bool?
        public var quietHours: QuietHours?
        public var timeZone: String?

        public init(sound: Bool? = nil, haptics: Bool? = nil, quietHours: QuietHours? = nil, timeZone: String? = nil) {
            self.sound = sound
            self.haptics = haptics
            self.quietHours = quietHours
            self.timeZone = timeZone
        }
    }

    public struct NotificationUpdated: Codable, Sendable, Hashable {
        public internal(set) var ids: [String]
        public internal(set) var state: NotificationStateChange

        public init(ids: [String], state: NotificationStateChange) {
            self.ids = ids
            self.state = state
        }
    }

    public struct NotificationRemoved: Codable, Sendable, Hashable {
        public internal(set) var ids: [String]

        public init(ids: [String]) {
            self.ids = ids
        }
    }
}

// Not compiled on Linux, where this package's tests run; only its syntax is checked there.
#if canImport(UserNotifications) && canImport(CryptoKit) && !os(tvOS)
    import CryptoKit
    import Foundation
    import UserNotifications

    /// The notification center of Apple's systems.
    public struct UserNotificationScreen: NotificationScreen {
        /// APNs takes a collapse id of at most so many bytes. The service sends the hash of a longer tag.
        private static let tagBytesMax = 64

        public init() {}

        public func show(_ alert: PushAlert) async {
            let content = UNMutableNotificationContent()
            (content.title, content.body) = (alert.title, alert.body)
            content.threadIdentifier = UserNotificationScreen.identifier(alert.tag)
            content.userInfo = ["bellhop": ["tag": alert.tag, "data": alert.data.text]]
            if !alert.isSilent { content.sound = .default }
            let request = UNNotificationRequest(
                identifier: UserNotificationScreen.identifier(alert.tag), content: content, trigger: nil)
            try? await UNUserNotificationCenter.current().add(request)
        }

        public func remove(_ tags: [String]) async {
            let identifiers = tags.map(UserNotificationScreen.identifier)
            UNUserNotificationCenter.current().removeDeliveredNotifications(withIdentifiers: identifiers)
        }

        public func setBadge(_ count: Int) async {
            #if !os(watchOS)
                try? await UNUserNotificationCenter.current().setBadgeCount(count)
            #endif
        }

        public func clear() async {
            UNUserNotificationCenter.current().removeAllDeliveredNotifications()
            await setBadge(0)
        }

        /// Returns the identifier under which the system shows a message of the service: its collapse id.
        private static func identifier(_ tag: String) -> String {
            guard tag.utf8.count > tagBytesMax else { return tag }
            return Data(SHA256.hash(data: Data(tag.utf8))).base64EncodedString()
                .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
                .replacingOccurrences(of: "=", with: "")
        }
    }
#endif

// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct PushDevices: Codable, Sendable, Hashable {
        public internal(set) var items: [PushDevice]

        public init(items: [PushDevice]) {
            self.items = items
        }
    }

    public struct PushDevice: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var platform: PushPlatform
        /// Bundle id of the app (APNs); null for the one of the settings.
        public internal(set) var app: String?
        public internal(set) var environment: PushDevice.Environment
        public internal(set) var createdAt: Date
        /// Time of the last registration.
        public internal(set) var registeredAt: Date

        public init(
            id: String, platform: PushPlatform, app: String? = nil, environment: PushDevice.Environment,
            createdAt: Date, registeredAt: Date
        ) {
            self.id = id
            self.platform = platform
            self.app = app
            self.environment = environment
            self.createdAt = createdAt
            self.registeredAt = registeredAt
        }

        public struct Environment: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let production = Environment(rawValue: "production")
            public static let sandbox = Environment(rawValue: "sandbox")
        }
    }

    public struct PushPlatform: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let apns = PushPlatform(rawValue: "apns")
        public static let fcm = PushPlatform(rawValue: "fcm")
        public static let webpush = PushPlatform(rawValue: "webpush")
    }

    public struct PushDeviceDraft: Codable, Sendable, Hashable {
        public var platform: PushPlatform
        /// Device token of APNs (two hexadecimal digits for each byte) or registration token of FCM.
        public var token: String?
        public var subscription: PushSubscription?
        /// Bundle id of the app, for APNs.
        public var app: String?
        /// `sandbox` for development builds (APNs).
        public var environment: PushDeviceDraft.Environment?

        public init(
            platform: PushPlatform, token: String? = nil, subscription: PushSubscription? = nil, app: String? = nil,
            environment: PushDeviceDraft.Environment? = nil
        ) {
            self.platform = platform
            self.token = token
            self.subscription = subscription
            self.app = app
            self.environment = environment
        }

        /// `sandbox` for development builds (APNs).
        public struct Environment: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let production = Environment(rawValue: "production")
            public static let sandbox = Environment(rawValue: "sandbox")
        }
    }

    /// What `PushSubscription.toJSON()` of a browser returns.
    public struct PushSubscription: Codable, Sendable, Hashable {
        /// Must begin with `https://` and name the host of a known push service, written as in RFC 3986: a host name of
        /// letters, digits, hyphens and dots, no user, no fragment, and no `.` or `..` in the path.
        public internal(set) var endpoint: String
        public internal(set) var expirationTime: Double?
        public internal(set) var keys: PushSubscription.Keys

        public init(endpoint: String, expirationTime: Double? = nil, keys: PushSubscription.Keys) {
            self.endpoint = endpoint
            self.expirationTime = expirationTime
            self.keys = keys
        }

        public struct Keys: Codable, Sendable, Hashable {
            /// Public key of the browser, in base64url.
            public internal(set) var p256dh: String
            /// Secret of 16 bytes, in base64url.
            public internal(set) var auth: String

            public init(p256dh: String, auth: String) {
                self.p256dh = p256dh
                self.auth = auth
            }
        }
    }
}

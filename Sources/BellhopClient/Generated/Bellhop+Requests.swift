// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct ListRequestsDirection: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let incoming = ListRequestsDirection(rawValue: "incoming")
        public static let outgoing = ListRequestsDirection(rawValue: "outgoing")
    }

    public struct ListRequestsStatus: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let open = ListRequestsStatus(rawValue: "open")
        public static let accepted = ListRequestsStatus(rawValue: "accepted")
        public static let declined = ListRequestsStatus(rawValue: "declined")
    }

    public struct RequestKind: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let follow = RequestKind(rawValue: "follow")
        public static let friend = RequestKind(rawValue: "friend")
        public static let booking = RequestKind(rawValue: "booking")
        public static let group = RequestKind(rawValue: "group")
    }

    public struct UserRequest: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var kind: RequestKind
        public internal(set) var fromUserId: String
        public internal(set) var toUserId: String
        public internal(set) var fromName: String?
        /// Id of the subject of the request, such as a group.
        public internal(set) var aboutId: String?
        public internal(set) var status: UserRequest.Status
        public internal(set) var createdAt: Date
        public internal(set) var answeredAt: Date?

        public init(
            id: String, kind: RequestKind, fromUserId: String, toUserId: String, fromName: String? = nil,
            aboutId: String? = nil, status: UserRequest.Status, createdAt: Date, answeredAt: Date? = nil
        ) {
            self.id = id
            self.kind = kind
            self.fromUserId = fromUserId
            self.toUserId = toUserId
            self.fromName = fromName
            self.aboutId = aboutId
            self.status = status
            self.createdAt = createdAt
            self.answeredAt = answeredAt
        }

        public struct Status: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let open = Status(rawValue: "open")
            public static let accepted = Status(rawValue: "accepted")
            public static let declined = Status(rawValue: "declined")
        }
    }

    public struct CreateRequestBody: Codable, Sendable, Hashable {
        public var kind: RequestKind
        public var toUserId: String
        public var fromUserId: String?
        /// Name of the requester, shown in the notification.
        public var fromName: String?
        public var aboutId: String?

        public init(
            kind: RequestKind, toUserId: String, fromUserId: String? = nil, fromName: String? = nil,
            aboutId: String? = nil
        ) {
            self.kind = kind
            self.toUserId = toUserId
            self.fromUserId = fromUserId
            self.fromName = fromName
            self.aboutId = aboutId
        }
    }

    public struct UserRequestWithBadges: Codable, Sendable, Hashable {
        public internal(set) var request: UserRequest
        public internal(set) var badges: Badges

        public init(request: UserRequest, badges: Badges) {
            self.request = request
            self.badges = badges
        }
    }

    public struct SeeRequestsBody: Codable, Sendable, Hashable {
        /// Id of the newest request on the screen.
        public var seenUpTo: String

        public init(seenUpTo: String) {
            self.seenUpTo = seenUpTo
        }
    }

    public struct AnswerRequestBody: Codable, Sendable, Hashable {
        public var status: AnswerRequestBody.Status

        public init(status: AnswerRequestBody.Status) {
            self.status = status
        }

        public struct Status: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let accepted = Status(rawValue: "accepted")
            public static let declined = Status(rawValue: "declined")
        }
    }
}

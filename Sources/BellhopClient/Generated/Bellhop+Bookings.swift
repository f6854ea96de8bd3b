// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct CreateBookingBody: Codable, Sendable, Hashable {
        public var shopId: String
        public var barberId: String?
        public var service: String
        public var scheduledStart: Date
        public var durationMinutes: Int
        public var tier: Tier?
        public var userId: String?
        public var customerName: String?

        public init(
            shopId: String, barberId: String? = nil, service: String, scheduledStart: Date, durationMinutes: Int,
            tier: Tier? = nil, userId: String? = nil, customerName: String? = nil
        ) {
            self.shopId = shopId
            self.barberId = barberId
            self.service = service
            self.scheduledStart = scheduledStart
            self.durationMinutes = durationMinutes
            self.tier = tier
            self.userId = userId
            self.customerName = customerName
        }
    }

    public struct ChangeBookingBody: Codable, Sendable, Hashable {
        public var status: BookingStatus?
        public var scheduledStart: Date?
        public var durationMinutes: Int?
        public var barberId: String?
        public var arrived: Bool?

        public init(
            status: BookingStatus? = nil, scheduledStart: Date? = nil, durationMinutes: Int? = nil,
            barberId: String? = nil, arrived: Bool? = nil
        ) {
            self.status = status
            self.scheduledStart = scheduledStart
            self.durationMinutes = durationMinutes
            self.barberId = barberId
            self.arrived = arrived
        }
    }

    public struct BookingHistoryEntry: Codable, Sendable, Hashable {
        public internal(set) var version: Int
        public internal(set) var at: Date
        public internal(set) var actorId: String
        public internal(set) var actorRole: String
        public internal(set) var from: BookingStatus?
        public internal(set) var to: BookingStatus
        public internal(set) var scheduledStart: Date
        public internal(set) var durationMinutes: Int
        public internal(set) var barberId: String?

        public init(
            version: Int, at: Date, actorId: String, actorRole: String, from: BookingStatus? = nil, to: BookingStatus,
            scheduledStart: Date, durationMinutes: Int, barberId: String? = nil
        ) {
            self.version = version
            self.at = at
            self.actorId = actorId
            self.actorRole = actorRole
            self.from = from
            self.to = to
            self.scheduledStart = scheduledStart
            self.durationMinutes = durationMinutes
            self.barberId = barberId
        }
    }

    public struct BookingStatusChange: Codable, Sendable, Hashable {
        public internal(set) var bookingId: String
        public internal(set) var status: BookingStatus
        public internal(set) var previousStatus: BookingStatus?
        public internal(set) var version: Int
        public internal(set) var epoch: String
        public internal(set) var estimatedCompletion: Date?

        public init(
            bookingId: String, status: BookingStatus, previousStatus: BookingStatus? = nil, version: Int, epoch: String,
            estimatedCompletion: Date? = nil
        ) {
            self.bookingId = bookingId
            self.status = status
            self.previousStatus = previousStatus
            self.version = version
            self.epoch = epoch
            self.estimatedCompletion = estimatedCompletion
        }
    }
}

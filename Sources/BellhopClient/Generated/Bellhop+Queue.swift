// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct QueueStatus: Codable, Sendable, Hashable {
        public internal(set) var shopId: String
        /// Number of today's confirmed bookings.
        public internal(set) var queueLength: Int
        /// ceil(queueLength / barbers × average service time).
        public internal(set) var avgWaitTime: Int
        /// Number of barbers on duty.
        public internal(set) var currentlyServing: Int
        /// Number of bookings in progress.
        public internal(set) var inService: Int
        /// `paused`: all barbers on duty are on a break. The estimate assumes that a break lasts 15 minutes, and at
        /// least 5 more from now. `unstaffed`: no barber is on duty, and there is no estimate.
        public internal(set) var state: QueueStatus.State
        public internal(set) var estimatedWaitTimes: QueueStatus.EstimatedWaitTimes
        public internal(set) var estimate: QueueStatus.Estimate?
        public internal(set) var updatedAt: Date

        public init(
            shopId: String, queueLength: Int, avgWaitTime: Int, currentlyServing: Int, inService: Int,
            state: QueueStatus.State, estimatedWaitTimes: QueueStatus.EstimatedWaitTimes,
            estimate: QueueStatus.Estimate? = nil, updatedAt: Date
        ) {
            self.shopId = shopId
            self.queueLength = queueLength
            self.avgWaitTime = avgWaitTime
            self.currentlyServing = currentlyServing
            self.inService = inService
            self.state = state
            self.estimatedWaitTimes = estimatedWaitTimes
            self.estimate = estimate
            self.updatedAt = updatedAt
        }

        /// `paused`: all barbers on duty are on a break. The estimate assumes that a break lasts 15 minutes, and at
        /// least 5 more from now. `unstaffed`: no barber is on duty, and there is no estimate.
        public struct State: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let open = State(rawValue: "open")
            public static let paused = State(rawValue: "paused")
            public static let unstaffed = State(rawValue: "unstaffed")
        }

        public struct EstimatedWaitTimes: Codable, Sendable, Hashable {
            public internal(set) var standard: Int
            public internal(set) var blackCard: Int

            public init(standard: Int, blackCard: Int) {
                self.standard = standard
                self.blackCard = blackCard
            }
        }

        public struct Estimate: Codable, Sendable, Hashable {
            public internal(set) var standard: Wait
            public internal(set) var blackCard: Wait
            public internal(set) var method: String
            public internal(set) var sampleSize: Int

            public init(standard: Wait, blackCard: Wait, method: String, sampleSize: Int) {
                self.standard = standard
                self.blackCard = blackCard
                self.method = method
                self.sampleSize = sampleSize
            }
        }
    }

    /// Whole minutes, rounded up.
    public struct Wait: Codable, Sendable, Hashable {
        /// Median: half of the waits are shorter.
        public internal(set) var p50: Int
        /// 90th percentile: nine of ten waits are shorter.
        public internal(set) var p90: Int

        public init(p50: Int, p90: Int) {
            self.p50 = p50
            self.p90 = p90
        }
    }

    public struct QueueEntry: Codable, Sendable, Hashable {
        public internal(set) var bookingId: String
        public internal(set) var userId: String?
        public internal(set) var customerName: String?
        public internal(set) var status: BookingStatus
        public internal(set) var lane: Tier
        /// Null if the customer is in service or not due within 15 minutes.
        public internal(set) var position: Int?
        public internal(set) var wait: Wait?
        public internal(set) var barberId: String?
        public internal(set) var service: String
        public internal(set) var scheduledStart: Date
        public internal(set) var arrivedAt: Date?
        public internal(set) var startedAt: Date?

        public init(
            bookingId: String, userId: String? = nil, customerName: String? = nil, status: BookingStatus, lane: Tier,
            position: Int? = nil, wait: Wait? = nil, barberId: String? = nil, service: String, scheduledStart: Date,
            arrivedAt: Date? = nil, startedAt: Date? = nil
        ) {
            self.bookingId = bookingId
            self.userId = userId
            self.customerName = customerName
            self.status = status
            self.lane = lane
            self.position = position
            self.wait = wait
            self.barberId = barberId
            self.service = service
            self.scheduledStart = scheduledStart
            self.arrivedAt = arrivedAt
            self.startedAt = startedAt
        }
    }

    public struct BookingStatus: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let pending = BookingStatus(rawValue: "pending")
        public static let confirmed = BookingStatus(rawValue: "confirmed")
        public static let inProgress = BookingStatus(rawValue: "in-progress")
        public static let completed = BookingStatus(rawValue: "completed")
        public static let cancelled = BookingStatus(rawValue: "cancelled")
        public static let noShow = BookingStatus(rawValue: "no-show")
    }

    public struct Tier: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let standard = Tier(rawValue: "standard")
        public static let blackCard = Tier(rawValue: "blackCard")
    }

    public struct AddWalkInBody: Codable, Sendable, Hashable {
        public var service: String
        public var durationMinutes: Int?
        public var barberId: String?
        public var tier: Tier?
        public var userId: String?
        public var customerName: String?

        public init(
            service: String, durationMinutes: Int? = nil, barberId: String? = nil, tier: Tier? = nil,
            userId: String? = nil, customerName: String? = nil
        ) {
            self.service = service
            self.durationMinutes = durationMinutes
            self.barberId = barberId
            self.tier = tier
            self.userId = userId
            self.customerName = customerName
        }
    }

    public struct Booking: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var userId: String?
        public internal(set) var shopId: String
        /// Null means any barber.
        public internal(set) var barberId: String?
        public internal(set) var service: String
        public internal(set) var scheduledStart: Date
        public internal(set) var durationMinutes: Int
        public internal(set) var tier: Tier
        public internal(set) var status: BookingStatus
        public internal(set) var version: Int
        public internal(set) var epoch: String
        public internal(set) var source: Booking.Source
        public internal(set) var customerName: String?
        public internal(set) var arrivedAt: Date?
        public internal(set) var startedAt: Date?
        public internal(set) var completedAt: Date?
        /// The start plus the median service time, learned from the shop's completed bookings.
        public internal(set) var estimatedCompletion: Date?
        public internal(set) var createdAt: Date
        public internal(set) var updatedAt: Date

        public init(
            id: String, userId: String? = nil, shopId: String, barberId: String? = nil, service: String,
            scheduledStart: Date, durationMinutes: Int, tier: Tier, status: BookingStatus, version: Int, epoch: String,
            source: Booking.Source, customerName: String? = nil, arrivedAt: Date? = nil, startedAt: Date? = nil,
            completedAt: Date? = nil, estimatedCompletion: Date? = nil, createdAt: Date, updatedAt: Date
        ) {
            self.id = id
            self.userId = userId
            self.shopId = shopId
            self.barberId = barberId
            self.service = service
            self.scheduledStart = scheduledStart
            self.durationMinutes = durationMinutes
            self.tier = tier
            self.status = status
            self.version = version
            self.epoch = epoch
            self.source = source
            self.customerName = customerName
            self.arrivedAt = arrivedAt
            self.startedAt = startedAt
            self.completedAt = completedAt
            self.estimatedCompletion = estimatedCompletion
            self.createdAt = createdAt
            self.updatedAt = updatedAt
        }

        public struct Source: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let online = Source(rawValue: "online")
            public static let walkIn = Source(rawValue: "walkIn")
        }
    }

    public struct QueueAccuracy: Codable, Sendable, Hashable {
        public internal(set) var standard: LaneAccuracy
        public internal(set) var blackCard: LaneAccuracy
        public internal(set) var overall: LaneAccuracy

        public init(standard: LaneAccuracy, blackCard: LaneAccuracy, overall: LaneAccuracy) {
            self.standard = standard
            self.blackCard = blackCard
            self.overall = overall
        }
    }

    public struct LaneAccuracy: Codable, Sendable, Hashable {
        public internal(set) var n: Int
        /// Mean absolute error in minutes.
        public internal(set) var meanAbsoluteError: Double?
        /// Mean error in minutes. A positive value means that waits were shorter than estimated.
        public internal(set) var bias: Double?
        public internal(set) var shareUnderP90: Double?
        public internal(set) var formula: LaneAccuracy.Formula
        /// Share of the formula's error that the estimate avoids.
        public internal(set) var improvement: Double?

        public init(
            n: Int, meanAbsoluteError: Double? = nil, bias: Double? = nil, shareUnderP90: Double? = nil,
            formula: LaneAccuracy.Formula, improvement: Double? = nil
        ) {
            self.n = n
            self.meanAbsoluteError = meanAbsoluteError
            self.bias = bias
            self.shareUnderP90 = shareUnderP90
            self.formula = formula
            self.improvement = improvement
        }

        public struct Formula: Codable, Sendable, Hashable {
            public internal(set) var n: Int
            /// Mean absolute error in minutes.
            public internal(set) var meanAbsoluteError: Double?
            /// Mean error in minutes. A positive value means that waits were shorter than estimated.
            public internal(set) var bias: Double?
            public internal(set) var shareUnderEstimate: Double?

            public init(
                n: Int, meanAbsoluteError: Double? = nil, bias: Double? = nil, shareUnderEstimate: Double? = nil
            ) {
                self.n = n
                self.meanAbsoluteError = meanAbsoluteError
                self.bias = bias
                self.shareUnderEstimate = shareUnderEstimate
            }
        }
    }

    public struct ErrorSummary: Codable, Sendable, Hashable {
        public internal(set) var n: Int
        /// Mean absolute error in minutes.
        public internal(set) var meanAbsoluteError: Double?
        /// Mean error in minutes. A positive value means that waits were shorter than estimated.
        public internal(set) var bias: Double?

        public init(n: Int, meanAbsoluteError: Double? = nil, bias: Double? = nil) {
            self.n = n
            self.meanAbsoluteError = meanAbsoluteError
            self.bias = bias
        }
    }
}

// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct QueueStatus: Codable, Sendable, Hashable {
        public let shopId: String
        /// Number of today's confirmed bookings.
        public let queueLength: Int
        /// ceil(queueLength / barbers × average service time).
        public let avgWaitTime: Int
        /// Number of barbers on duty.
        public let currentlyServing: Int
        /// Number of bookings in progress.
        public let inService: Int
        /// `paused`: all barbers on duty are on a break. The estimate assumes that a break lasts 15 minutes, and at
        /// least 5 more from now. `unstaffed`: no barber is on duty, and there is no estimate.
        public let state: QueueStatus.State
        public let estimatedWaitTimes: QueueStatus.EstimatedWaitTimes
        public let estimate: QueueStatus.Estimate?
        public let updatedAt: Date

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
            public let standard: Int
            public let blackCard: Int

            public init(standard: Int, blackCard: Int) {
                self.standard = standard
                self.blackCard = blackCard
            }
        }

        public struct Estimate: Codable, Sendable, Hashable {
            public let standard: Wait
            public let blackCard: Wait
            public let method: String
            public let sampleSize: Int

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
        public let p50: Int
        /// 90th percentile: nine of ten waits are shorter.
        public let p90: Int

        public init(p50: Int, p90: Int) {
            self.p50 = p50
            self.p90 = p90
        }
    }

    public struct QueueEntry: Codable, Sendable, Hashable {
        public let bookingId: String
        public let userId: String?
        public let customerName: String?
        public let status: BookingStatus
        public let lane: Tier
        /// Null if the customer is in service or not due within 15 minutes.
        public let position: Int?
        public let wait: Wait?
        public let barberId: String?
        public let service: String
        public let scheduledStart: Date
        public let arrivedAt: Date?
        public let startedAt: Date?

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
        public let id: String
        public let userId: String?
        public let shopId: String
        /// Null means any barber.
        public let barberId: String?
        public let service: String
        public let scheduledStart: Date
        public let durationMinutes: Int
        public let tier: Tier
        public let status: BookingStatus
        public let version: Int
        public let epoch: String
        public let source: Booking.Source
        public let customerName: String?
        public let arrivedAt: Date?
        public let startedAt: Date?
        public let completedAt: Date?
        /// The start plus the median service time, learned from the shop's completed bookings.
        public let estimatedCompletion: Date?
        public let createdAt: Date
        public let updatedAt: Date

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
        public let standard: LaneAccuracy
        public let blackCard: LaneAccuracy
        public let overall: LaneAccuracy

        public init(standard: LaneAccuracy, blackCard: LaneAccuracy, overall: LaneAccuracy) {
            self.standard = standard
            self.blackCard = blackCard
            self.overall = overall
        }
    }

    public struct LaneAccuracy: Codable, Sendable, Hashable {
        public let n: Int
        /// Mean absolute error in minutes.
        public let meanAbsoluteError: Double?
        /// Mean error in minutes. A positive value means that waits were shorter than estimated.
        public let bias: Double?
        public let shareUnderP90: Double?
        public let formula: LaneAccuracy.Formula
        /// Share of the formula's error that the estimate avoids.
        public let improvement: Double?

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
            public let n: Int
            /// Mean absolute error in minutes.
            public let meanAbsoluteError: Double?
            /// Mean error in minutes. A positive value means that waits were shorter than estimated.
            public let bias: Double?
            public let shareUnderEstimate: Double?

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
        public let n: Int
        /// Mean absolute error in minutes.
        public let meanAbsoluteError: Double?
        /// Mean error in minutes. A positive value means that waits were shorter than estimated.
        public let bias: Double?

        public init(n: Int, meanAbsoluteError: Double? = nil, bias: Double? = nil) {
            self.n = n
            self.meanAbsoluteError = meanAbsoluteError
            self.bias = bias
        }
    }
}

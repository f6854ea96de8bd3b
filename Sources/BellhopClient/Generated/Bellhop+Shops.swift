// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct Shop: Codable, Sendable, Hashable {
        public let id: String
        public let name: String
        public let timeZone: String
        public let createdAt: Date
        public let updatedAt: Date

        public init(id: String, name: String, timeZone: String, createdAt: Date, updatedAt: Date) {
            self.id = id
            self.name = name
            self.timeZone = timeZone
            self.createdAt = createdAt
            self.updatedAt = updatedAt
        }
    }

    public struct ReplaceShopBody: Codable, Sendable, Hashable {
        public var name: String
        public var timeZone: String

        public init(name: String, timeZone: String) {
            self.name = name
            self.timeZone = timeZone
        }
    }

    public struct Barber: Codable, Sendable, Hashable {
        public let id: String
        public let shopId: String
        public let name: String?
        public let onDuty: Bool
        public let onBreak: Bool
        public let updatedAt: Date

        public init(id: String, shopId: String, name: String? = nil, onDuty: Bool, onBreak: Bool, updatedAt: Date) {
            self.id = id
            self.shopId = shopId
            self.name = name
            self.onDuty = onDuty
            self.onBreak = onBreak
            self.updatedAt = updatedAt
        }
    }

    public struct ReplaceBarberBody: Codable, Sendable, Hashable {
        public var onDuty: Bool
        public var onBreak: Bool?
        public var name: String?

        public init(onDuty: Bool, onBreak: Bool? = nil, name: String? = nil) {
            self.onDuty = onDuty
            self.onBreak = onBreak
            self.name = name
        }
    }
}

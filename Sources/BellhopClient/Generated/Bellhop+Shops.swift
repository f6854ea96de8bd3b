// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct Shop: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var name: String
        public internal(set) var timeZone: String
        public internal(set) var createdAt: Date
        public internal(set) var updatedAt: Date

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
        public internal(set) var id: String
        public internal(set) var shopId: String
        public internal(set) var name: String?
        public internal(set) var onDuty: Bool
        public internal(set) var onBreak: Bool
        public internal(set) var updatedAt: Date

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

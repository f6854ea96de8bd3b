import Foundation
import Rows
import TestSupport
import Testing

/// The recorded payloads of `Tests/Fixtures/Changes`.
enum ChangeFixtures {
    private static let folder = repository.appendingPathComponent("Tests/Fixtures/Changes")

    static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: folder.appendingPathComponent("\(name).json")))
    }

    static func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
    }

    /// Returns the only change in a fixture.
    static func change(
        _ name: String, delivery: ChangeDelivery = ChangeDelivery(), format: ChangeFormat? = nil
    ) throws -> TableChange {
        try only(ChangeBatch(reading: bytes(name), delivery: delivery, format: format))
    }

    static func only(_ batch: ChangeBatch) throws -> TableChange {
        try #require(batch.items.count == 1, "\(batch)")
        return try #require(batch.changes.first, "\(batch.rejections)")
    }

    /// Reads a text that must contain exactly one change.
    static func change(text: String, delivery: ChangeDelivery = ChangeDelivery()) throws -> TableChange {
        try only(ChangeBatch(reading: Array(text.utf8), delivery: delivery))
    }

    /// Reads a text that must contain exactly one rejection.
    static func rejection(
        text: String, delivery: ChangeDelivery = ChangeDelivery(), format: ChangeFormat? = nil
    ) throws -> ChangeRejection {
        let batch = try ChangeBatch(reading: Array(text.utf8), delivery: delivery, format: format)
        try #require(batch.items.count == 1)
        return try #require(batch.rejections.first, "\(batch)")
    }
}

extension ChangeBatch {
    var rejections: [ChangeRejection] {
        items.compactMap { if case .rejected(let rejection) = $0 { rejection } else { nil } }
    }
}

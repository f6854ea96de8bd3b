import Foundation
import TestSupport
import Testing

@testable import Service

/// The lists that features declare, compared with their code.
@Suite(.timed) struct CatalogTests {
    private static let features = repository.appendingPathComponent("Sources/Service/Features")

    /// Returns the code of a feature from the folder with the feature's name, which may be inside another feature's.
    private static func code(of feature: Feature) throws -> String {
        let path = try #require(
            try FileManager.default.subpathsOfDirectory(atPath: features.path)
                .first { $0.lowercased().split(separator: "/").last.map(String.init) == feature.name },
            "\(feature.name)")
        let folder = features.appendingPathComponent(path)
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "swift" }
            .map { try String(contentsOf: $0, encoding: .utf8) }.joined(separator: "\n")
    }

    @Test func audienceTemplates_areUnambiguous() { #expect(Catalog.ambiguities == []) }

    @Test func everyEventThatIsPublished_isListed() throws {
        var count = 0
        for feature in Catalog.features() {
            for match in try Self.code(of: feature).matches(of: /(?:publish|tell)\w*\(\s*"(?<name>[a-z_]+:[a-z_]+)"/) {
                #expect(feature.events.contains(String(match.name)), "\(feature.name) does not list \(match.name)")
                count += 1
            }
        }
        #expect(count > 15, "the search must find published events")
    }

    @Test func everyKindOfLock_isListed_andEveryListedOneIsMade() throws {
        for feature in Catalog.features() {
            let made = try Self.code(of: feature).matches(of: /LockKey\(kind: "(?<kind>\w+)"/).map { String($0.kind) }
            #expect(Set(made) == Set(feature.locks), "\(feature.name)")
        }
    }
}

import Foundation
import Testing

/// The layers of BellhopClient: each folder may use only the folders before it.
extension TidyTests {
    /// The folders, lowest first. The empty name is the module's own folder.
    private static let clientFolders = ["", "Calls", "Generated", "Platforms", "Machines", "Outbox", "Streams", "Bell"]

    @Test func clientFolders_useLowerFoldersOnly() throws {
        let files = try Self.files(under: ["Sources/BellhopClient"], endingWith: ".swift")
        let texts = Dictionary(
            uniqueKeysWithValues: files.map { (String($0.path.dropFirst("Sources/".count)), $0.text) })
        let arrows = SourceMap(texts.map { ($0.key, $0.value) }).arrows
        #expect(arrows.count > 100, "the search must find types")
        let floors = Dictionary(uniqueKeysWithValues: Self.clientFolders.enumerated().map { ($1, $0) })
        func floor(_ path: String) -> Int? {
            floors[path.split(separator: "/").dropFirst().dropLast().joined(separator: "/")]
        }
        for path in texts.keys.sorted() where floor(path) == nil { Issue.record("\(path) is in a folder without a floor") }
        for arrow in arrows.sorted(by: { ($0.from, $0.type) < ($1.from, $1.type) }) {
            // A nested type may have the name of another file's type.
            guard let from = floor(arrow.from), let to = floor(arrow.to), from < to,
                texts[arrow.from]?.contains("struct \(arrow.type):") == false
            else { continue }
            Issue.record("wrong direction: \(arrow.from) uses \(arrow.type) of \(arrow.to)")
        }
    }
}

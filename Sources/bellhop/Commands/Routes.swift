import ArgumentParser
import BellhopCalls
import Service

struct Routes: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the routes with method, path, required role and capability, feature, and feature set.",
        discussion: "Routes of feature sets that are off (the setting features) are left out.")

    @Flag(help: "Print JSON.")
    var json = false

    @Flag(help: "Print the routes of all feature sets, on or off.")
    var all = false

    @OptionGroup var settings: SettingsFlags

    func run() async throws {
        let sets = all ? Set(FeatureSet.allCases) : try await settings.loadFeatures()
        let cells = Operations.routes.filter { $0.set.map(sets.contains) ?? true }.map {
            [$0.method, $0.pattern, $0.access, $0.capability ?? "-", $0.feature, $0.set?.rawValue ?? "-"]
        }
        let header = ["METHOD", "PATH", "ACCESS", "CAPABILITY", "FEATURE", "SET"]
        guard json else { return Terminal.line(Terminal.table(header, cells)) }
        let names = header.map { $0.lowercased() }
        let list = cells.map { JSON.object(Dictionary(uniqueKeysWithValues: zip(names, $0.map(JSON.string)))) }
        Terminal.line(JSON.array(list).text)
    }
}

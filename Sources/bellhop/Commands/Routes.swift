import ArgumentParser
import BellhopCalls
import Service

struct Routes: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print all routes with method, path, required role and capability, and feature.")

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let cells = Operations.routes.map { [$0.method, $0.pattern, $0.access, $0.capability ?? "-", $0.feature] }
        let header = ["METHOD", "PATH", "ACCESS", "CAPABILITY", "FEATURE"]
        guard json else { return Terminal.line(Terminal.table(header, cells)) }
        let names = header.map { $0.lowercased() }
        let list = cells.map { JSON.object(Dictionary(uniqueKeysWithValues: zip(names, $0.map(JSON.string)))) }
        Terminal.line(JSON.array(list).text)
    }
}

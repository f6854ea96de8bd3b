import ArgumentParser
import BellhopClient
import Service

struct Routes: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print every route: method, path, who may call it, which feature answers.")

    @Flag(help: "As JSON.")
    var json = false

    func run() throws {
        let routes = Operations.routes
        if json {
            let list = routes.map { route -> JSON in
                [
                    "method": .string(route.method), "path": .string(route.pattern),
                    "access": .string(route.access), "feature": .string(route.feature),
                ]
            }
            return Terminal.line(JSON.array(list).text)
        }
        let cells = routes.map { [$0.method, $0.pattern, $0.access, $0.feature] }
        Terminal.line(Terminal.table(["METHOD", "PATH", "ACCESS", "FEATURE"], cells))
    }
}

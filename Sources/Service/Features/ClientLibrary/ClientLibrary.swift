import MicroHTTP
import Values

/// bellhop.js as the service itself serves it, so that a page needs no package manager:
/// `import { connect } from "https://bells.example/bellhop.js"`.
///
/// All files are made of `Sources/bellhop.js` by `.ci/bundle`, and committed, so that building the service needs no tool
/// of JavaScript's.
enum ClientLibraryFeature {
    static var feature: Feature {
        Feature(
            name: "clientlibrary",
            endpoints: files.map { name in
                Endpoint(.get, "/\(name)", access: .anyone, query: .any, effort: .instant) { _ in
                    guard let script = scripts[name] else { throw Failure.notFound("file") }
                    return .now(script)
                }
            })
    }

    private static let files = [
        "bellhop.js",
        // Its parts, for pages that want less: the core, and what imports from beside it.
        "bellhop-core.js", "bellhop-features.js", "bellhop-tabs.js",
        // The worker that holds the stream of all tabs: the library starts it from beside itself.
        "bellhop-worker.js",
    ]

    /// Made when somebody first asks. A page must not run an older library than the service it speaks to, so each is asked
    /// for again each time. Pages of any origin may import it: a module's source is fetched as by CORS. It has no secret in
    /// it.
    private static let scripts = Dictionary(
        uniqueKeysWithValues: files.map { name in
            let headers: HeaderFields = [
                ("Access-Control-Allow-Origin", "*"), ("Cross-Origin-Resource-Policy", "cross-origin"),
            ]
            let type = "text/javascript; charset=utf-8"
            return (name, Response.file(Resource.bytes(name), type: type, headers: headers))
        })
}

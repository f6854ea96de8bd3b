import MicroHTTP
import Values

/// bellhop.js as served by the service, so that a page needs no package manager:
/// `import { connect } from "https://bells.example/bellhop.js"`.
///
/// `.ci/bundle` makes all files from `Sources/bellhop.js`. They are committed, so that building the service needs no
/// JavaScript tools.
enum ClientLibraryFeature {
    static var feature: Feature {
        Feature(
            name: "clientlibrary",
            endpoints: files.map { name in
                Endpoint(.get, "/\(name)", access: .anyone, query: .any, effort: .instant) { call in
                    guard let script = scripts[name] else { throw Failure.notFound("file") }
                    return .now(script.response(to: call.request))
                }
            })
    }

    private static let files = [
        "bellhop.js",
        // Its parts, for pages that need less: the core, and the modules that it imports from the same location.
        "bellhop-core.js", "bellhop-features.js", "bellhop-tabs.js",
        // What an app asks for: the state of the last start on the device, and push messages.
        "bellhop-offline.js", "bellhop-push.js",
        // The service worker that shows push messages. It controls the pages below its own location.
        "bellhop-sw.js",
        // The worker that holds the stream of all tabs. The library loads it from its own location.
        "bellhop-worker.js",
    ]

    /// Created on first use. A page must not run an older library than the service that it uses, so browsers must
    /// revalidate each time. Pages of any origin may import the library, because a module is fetched by CORS. It
    /// contains no secret.
    private static let scripts = Dictionary(
        uniqueKeysWithValues: files.map { name in
            let headers: HeaderFields = [
                ("Access-Control-Allow-Origin", "*"), ("Cross-Origin-Resource-Policy", "cross-origin"),
            ]
            let type = "text/javascript; charset=utf-8"
            return (name, PublicFile(Resource.bytes(name), type: type, headers: headers))
        })
}

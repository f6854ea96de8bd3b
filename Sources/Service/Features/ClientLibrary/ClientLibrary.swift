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
            endpoints: [
                serve("/bellhop.js", PackageResources.bellhop_js),
                // Its parts, for pages that want less: the core, and what imports from beside it.
                serve("/bellhop-core.js", PackageResources.bellhop_core_js),
                serve("/bellhop-features.js", PackageResources.bellhop_features_js),
                serve("/bellhop-tabs.js", PackageResources.bellhop_tabs_js),
                // The worker that holds the stream of all tabs: the library starts it from beside itself.
                serve("/bellhop-worker.js", PackageResources.bellhop_worker_js),
            ])
    }

    private static func serve(_ path: String, _ content: [UInt8]) -> Endpoint {
        let script = Response(
            status: 200,
            headers: [
                ("Content-Type", "text/javascript; charset=utf-8"),
                ("ETag", String(decoding: EntityTag(ofAll: content).bytes, as: UTF8.self)),
                // Asked again each time, and mostly answered by a 304: a page must not run an older library than the
                // service it speaks to.
                ("Cache-Control", "no-cache"),
                // Pages of any origin may import it: a module's source is fetched as by CORS. It has no secret in it.
                ("Access-Control-Allow-Origin", "*"), ("Cross-Origin-Resource-Policy", "cross-origin"),
            ],
            body: .shared(SharedBody(content)))
        return Endpoint(.get, path, access: .anyone, query: .any, effort: .instant) { _ in .now(script) }
    }
}

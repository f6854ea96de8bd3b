import MicroHTTP
import Values

/// The page at `/`: it shows what a token's owner sees, helps whoever builds an app, and draws the service's figures. It
/// stands on bellhop.js as the service serves it. The page at `/docs` draws the service's own description, to read and to
/// try. Neither fetches anything from elsewhere.
enum ConsoleFeature {
    static var feature: Feature {
        let files = files.mapValues { type, content in file(type, content) }
        return Feature(
            name: "console",
            endpoints: [
                page("/", PackageResources.console_html), page("/docs", PackageResources.docs_html),
                Endpoint(.get, "/console/tokens", access: .anyone, query: .any, effort: .instant, showTokens),
                Endpoint(.get, "/console/{name}", access: .anyone, query: .any, effort: .instant) { call in
                    guard let file = files[call.request.parameter(0)] else { throw Failure.notFound("file") }
                    return .now(file)
                },
            ])
    }

    // MARK: Files

    private static let files: [String: (type: String, content: [UInt8])] = [
        "console.css": (style, PackageResources.console_css),
        "app.js": (script, PackageResources.app_js),
        "dom.js": (script, PackageResources.dom_js),
        "session.js": (script, PackageResources.session_js),
        "status.js": (script, PackageResources.status_js),
        "cards.js": (script, PackageResources.cards_js),
        "places.js": (script, PackageResources.places_js),
        "events.js": (script, PackageResources.events_js),
        "tools.js": (script, PackageResources.tools_js),
        "operations.js": (script, PackageResources.operations_js),
        "docs.css": (style, PackageResources.docs_css),
        "docs.js": (script, PackageResources.docs_js),
        "shapes.js": (script, PackageResources.shapes_js),
        "try.js": (script, PackageResources.try_js),
    ]
    private static let style = "text/css; charset=utf-8"
    private static let script = "text/javascript; charset=utf-8"

    private static func page(_ path: String, _ content: [UInt8]) -> Endpoint {
        let page = file(
            "text/html; charset=utf-8", content,
            headers: [("Content-Security-Policy", policy), ("Referrer-Policy", "no-referrer")])
        return Endpoint(.get, path, access: .anyone, query: .any, effort: .instant) { _ in .now(page) }
    }

    private static func file(_ type: String, _ content: [UInt8], headers: HeaderFields = []) -> Response {
        var headers = headers
        headers.append("Content-Type", type)
        headers.append("Cache-Control", "no-cache")
        headers.append("ETag", String(decoding: EntityTag(ofAll: content).bytes, as: UTF8.self))
        return Response(status: 200, headers: headers, body: .shared(SharedBody(content)))
    }

    /// Only this service's own files may run, only it may be spoken to, nothing stands inline, and nobody may frame the
    /// page: a token in the field is worth protecting.
    private static let policy = """
        default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
        base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """

    // MARK: Development

    /// `GET /console/tokens`: the development tokens that `make run` has given the service (`consoleTokens`).
    ///
    /// They are for the page itself, opened on this machine. A browser says of every request whether a page of the same
    /// origin makes it; a name that somebody has let point to this machine is not one of this machine's own.
    @Sendable private static func showTokens(_ call: Call) throws -> Answer {
        let isOwnPage = call.request.header("Sec-Fetch-Site") == "same-origin"
        let isHere = Settings.isLoopback(host(in: call.request.header("Host") ?? ""))
        let tokens = isOwnPage && isHere ? call.settings.consoleTokens : []
        return .now(
            .json(200, JSONWriter.object { $0.member("tokens", tokens) }, headers: [("Cache-Control", "no-store")]))
    }

    /// A Host header without its port.
    private static func host(in header: String) -> String {
        if header.hasPrefix("[") { return String(header.dropFirst().prefix { $0 != "]" }) }
        return String(header.prefix { $0 != ":" })
    }
}

import MicroHTTP
import Values

/// The page at `/`. It shows what a token's owner sees, helps app developers, and displays the service's metrics. It
/// uses bellhop.js as the service serves it. The page at `/docs` shows the API description, to read and to try. Neither
/// page loads anything from elsewhere.
enum ConsoleFeature {
    static var feature: Feature {
        Feature(
            name: "console",
            endpoints: [
                page("/", "console.html"), page("/docs", "docs.html"),
                Endpoint(.get, "/console/tokens", access: .anyone, query: .any, effort: .instant, showTokens),
                Endpoint(.get, "/console/{name}", access: .anyone, query: .any, effort: .instant) { call in
                    guard let file = files[call.request.parameter(0)] else { throw Failure.notFound("file") }
                    return .now(file.response(to: call.request))
                },
            ])
    }

    // MARK: Files

    private static func page(_ path: String, _ name: String) -> Endpoint {
        Endpoint(.get, path, access: .anyone, query: .any, effort: .instant) { call in
            guard let page = pages[name] else { throw Failure.notFound("page") }
            return .now(page.response(to: call.request))
        }
    }

    /// Created on first use, as are the files.
    private static let pages = responses(
        ["console.html", "docs.html"], "text/html; charset=utf-8",
        [("Content-Security-Policy", policy), ("Referrer-Policy", "no-referrer")])

    private static let files = responses(["console.css", "docs.css"], "text/css; charset=utf-8").merging(
        responses(
            [
                "app.js", "cards.js", "docs.js", "dom.js", "events.js", "markdown.js", "notify.js", "operations.js",
                "places.js", "plots.js", "publish.js", "session.js", "shapes.js", "status.js", "tools.js", "try.js",
            ], "text/javascript; charset=utf-8")
    ) { file, _ in file }

    private static func responses(
        _ names: [String], _ type: String, _ headers: HeaderFields = []
    ) -> [String: PublicFile] {
        Dictionary(
            uniqueKeysWithValues: names.map { ($0, PublicFile(Resource.bytes($0), type: type, headers: headers)) })
    }

    /// Only this service's own files may run, connections go only to this service, inline code is forbidden, and
    /// framing is forbidden. These rules protect the token in the input field.
    private static let policy = """
        default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
        base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """

    // MARK: Development

    /// `GET /console/tokens`: the development tokens that `make run` has given the service (`consoleTokens`).
    ///
    /// They are only for the page itself, opened on this machine. Browsers report for every request whether a page of
    /// the same origin makes it. A foreign DNS name that resolves to this machine is not accepted as a local name.
    @Sendable private static func showTokens(_ call: Call) throws -> Answer {
        let isOwnPage = call.request.header("Sec-Fetch-Site") == "same-origin"
        let isHere = host(in: call.request.header("Host") ?? "")?.isLoopbackHost == true
        let tokens = isOwnPage && isHere ? call.settings.consoleTokens : []
        return .now(
            .json(200, JSONWriter.object { $0.member("tokens", tokens) }, headers: [("Cache-Control", "no-store")]))
    }

    /// Returns a Host header without its port, and an IPv6 address with its brackets (RFC 3986 §3.2.2). Nil for a text
    /// with anything else behind the host.
    private static func host(in header: String) -> Substring? {
        let isBracketed = header.hasPrefix("[")
        let last = isBracketed ? header.firstIndex(of: "]").map(header.index(after:)) : header.firstIndex(of: ":")
        guard let end = last, end < header.endIndex else { return header[...] }
        let port = header[end...]
        return port.first == ":" && port.dropFirst().utf8.allSatisfy { (48...57).contains($0) } ? header[..<end] : nil
    }
}

import Crypto
import Foundation
import MicroHTTP

/// The live console at `/`: one page that shows what a token's owner sees, with nothing fetched from elsewhere.
enum ConsoleFeature {
    static let feature = Feature(
        name: "console", tables: [], migrations: [],
        endpoints: [Endpoint(.get, "/", access: .anyone, effort: .instant) { _ in .now(page) }],
        reactions: [], topics: [], ticks: [])

    private static let page = Response(
        status: 200,
        headers: [
            ("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", policy),
            ("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-cache"),
        ],
        body: .bytes(PackageResources.console_html))

    /// Exactly the page's own script and style may run, only this service may be spoken to, and nobody may frame it: a
    /// token in the field is worth protecting.
    private static let policy = """
        default-src 'none'; script-src '\(digest(of: "script"))'; style-src '\(digest(of: "style"))'; img-src data:; \
        connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """

    /// The hash source of an inline element, as CSP level 3 defines it: over the bytes between its tags.
    private static func digest(of element: String) -> String {
        let page = Data(PackageResources.console_html)
        guard let start = page.range(of: Data("<\(element)>".utf8))?.upperBound,
            let end = page.range(of: Data("</\(element)>".utf8), in: start..<page.endIndex)?.lowerBound
        else { preconditionFailure("the console page has no <\(element)>") }
        return "sha256-" + Data(SHA256.hash(data: page[start..<end])).base64EncodedString()
    }
}

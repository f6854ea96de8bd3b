import Crypto
import Foundation
import MicroHTTP
import Values

/// The live console at `/`: one page that shows what a token's owner sees, with nothing fetched from elsewhere.
enum ConsoleFeature {
    /// - Parameter events: the names of all events that a stream may bring, since EventSource needs a listener for each.
    static func feature(events: [String]) -> Feature {
        let page = page(listeningTo: events)
        return Feature(
            name: "console",
            endpoints: [Endpoint(.get, "/", access: .anyone, query: .any, effort: .instant) { _ in .now(page) }])
    }

    private static func page(listeningTo events: [String]) -> Response {
        var page = Data(PackageResources.console_html)
        guard let place = page.range(of: Data("[/* events */]".utf8)) else {
            preconditionFailure("the console page has no place for the names of events")
        }
        var names = JSONWriter()
        names.array(events)
        page.replaceSubrange(place, with: names.bytes)
        return Response(
            status: 200,
            headers: [
                ("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", policy(of: page)),
                ("Referrer-Policy", "no-referrer"),
                ("Cache-Control", "no-cache"),
            ],
            body: .bytes(Array(page)))
    }

    /// Exactly the page's own script and style may run, only this service may be spoken to, and nobody may frame it: a
    /// token in the field is worth protecting.
    private static func policy(of page: Data) -> String {
        """
        default-src 'none'; script-src '\(digest(of: "script", page))'; style-src '\(digest(of: "style", page))'; \
        img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """
    }

    /// The hash source of an inline element, as CSP level 3 defines it: over the bytes between its tags.
    private static func digest(of element: String, _ page: Data) -> String {
        guard let start = page.range(of: Data("<\(element)>".utf8))?.upperBound,
            let end = page.range(of: Data("</\(element)>".utf8), in: start..<page.endIndex)?.lowerBound
        else { preconditionFailure("the console page has no <\(element)>") }
        return "sha256-" + Data(SHA256.hash(data: page[start..<end])).base64EncodedString()
    }
}

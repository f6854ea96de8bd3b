import TestSupport
import Testing

@testable import MicroHTTP

/// The route for a path, compared by bytes.
@Suite(.timed) struct RouterTests {
    private static func route(_ method: HTTPMethod, _ pattern: String) -> Route {
        Route(method, pattern) { _ in .response(Response(status: 200)) }
    }

    private static func match(_ router: Router, _ method: HTTPMethod, _ path: String) -> String {
        let bytes = Array(path.utf8)
        return bytes.withUnsafeBufferPointer { buffer in
            switch router.match(method, buffer) {
            case .found(let route, let parameters):
                let found = (0..<parameters.count).map { String(decoding: bytes[parameters[$0]], as: UTF8.self) }
                return ([route.pattern] + found).joined(separator: " ")
            case .notFound: return "404"
            case .methodNotAllowed(let allow): return "405 \(allow)"
            }
        }
    }

    @Test func constantSegments_precedeParameters_andParametersAreRead() throws {
        let router = try Router([
            Self.route(.get, "/"), Self.route(.get, "/shops"), Self.route(.get, "/shops/{id}"),
            Self.route(.put, "/shops/{id}"), Self.route(.get, "/shops/{id}/queue"),
            Self.route(.get, "/shops/open/hours"), Self.route(.put, "/shops/{id}/barbers/{barber}"),
        ])
        let expected: [(HTTPMethod, String, String)] = [
            (.get, "/", "/"), (.head, "/shops", "/shops"), (.get, "/shops/s1", "/shops/{id} s1"),
            (.get, "/shops/open", "/shops/{id} open"), (.get, "/shops/open/hours", "/shops/open/hours"),
            (.get, "/shops/open/queue", "/shops/{id}/queue open"),
            (.put, "/shops/a%2Fb/barbers/b", "/shops/{id}/barbers/{barber} a%2Fb b"),
            (.delete, "/shops/s1", "405 GET, PUT, HEAD, OPTIONS"), (.get, "/shops/", "404"), (.get, "//", "404"),
            (.get, "/shops/s1/", "404"), (.get, "/nothing", "404"), (.get, "shops", "404"), (.get, "", "404"),
        ]
        for (method, path, found) in expected { #expect(Self.match(router, method, path) == found, "\(path)") }
    }

    @Test func ambiguousRoutes_areRefused() {
        for pair in [("/a", "/a"), ("/a/{id}", "/a/{name}")] {
            #expect(throws: Router.Ambiguity.self) {
                try Router([Self.route(.get, pair.0), Self.route(.get, pair.1)])
            }
        }
        for pattern in ["a", "/a//b", "/{a}/{b}/{c}/{d}/{e}"] {
            #expect(throws: Router.Ambiguity.self) { try Router([Self.route(.get, pattern)]) }
        }
    }

    @Test func percentEncoding_isDecodedOrRefused() {
        func decode(_ text: String, plus: Bool = false) -> String? {
            PercentEncoding.decode(Array(text.utf8)[...], plusIsSpace: plus)
        }
        #expect(decode("a%20b%C3%A4") == "a bä")
        #expect(decode("a+b") == "a+b")
        #expect(decode("a+b", plus: true) == "a b")
        for bad in ["%", "%2", "%zz", "%00", "%ff", "%C3"] { #expect(decode(bad) == nil, "\(bad)") }
    }
}

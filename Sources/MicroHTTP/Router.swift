/// One address that is served, and by what.
public struct Route: Sendable {
    public let method: HTTPMethod
    /// `/v1/bookings/{id}`: segments are constants or parameters in braces.
    public let pattern: String
    /// The longest body that is accepted; more is refused before it is read.
    public let bodyBytesMax: Int
    /// Looks at the head of a request that announces a body of unusual length, or of none that is announced; an answer
    /// refuses it before the body is read. So only those who may send a large body make the server buffer one.
    public let screen: Screen?
    let handler: @Sendable (Request) -> Reply

    public init(
        _ method: HTTPMethod, _ pattern: String, bodyBytesMax: Int = 0,
        screen: Screen? = nil, handler: @escaping @Sendable (Request) -> Reply
    ) {
        self.method = method
        self.pattern = pattern
        self.bodyBytesMax = bodyBytesMax
        self.screen = screen
        self.handler = handler
    }
}

extension Route {
    public struct Screen: Sendable {
        /// Bodies up to this size are not asked about.
        public let bodyBytes: Int
        public let refuse: @Sendable (Request) -> Response?

        public init(above bodyBytes: Int, _ refuse: @escaping @Sendable (Request) -> Response?) {
            self.bodyBytes = bodyBytes
            self.refuse = refuse
        }
    }
}

/// Finds the route of a request by its path's bytes; nothing is decoded and no text is made on the way.
///
/// A constant segment wins over a parameter. HEAD is served by the route of GET.
public struct Router: Sendable {
    /// Two routes that a request could not choose between, or a pattern that is none.
    public struct Ambiguity: Error, CustomStringConvertible, Sendable {
        public let description: String
    }

    enum Match {
        case found(Route, PathParameters)
        case notFound
        case methodNotAllowed(allow: String)
    }

    private struct Node: Sendable {
        var constants: [(name: [UInt8], node: Int)] = []
        var parameter: Int?
        var routes: [Route] = []
    }

    private var nodes = [Node()]

    public init(_ routes: [Route]) throws(Ambiguity) {
        for route in routes { try add(route) }
    }

    private mutating func add(_ route: Route) throws(Ambiguity) {
        guard route.pattern.hasPrefix("/") else { throw Ambiguity(description: "\(route.pattern) is no path") }
        var node = 0
        var parameters = 0
        for segment in route.pattern.utf8.dropFirst().split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        where route.pattern != "/" {
            if segment.first == UInt8(ascii: "{"), segment.last == UInt8(ascii: "}") {
                parameters += 1
                node = nodes[node].parameter ?? makeParameter(of: node)
            } else {
                guard !segment.isEmpty else { throw Ambiguity(description: "\(route.pattern) has an empty segment") }
                let name = Array(segment)
                node = nodes[node].constants.first { $0.name == name }?.node ?? makeConstant(name, of: node)
            }
        }
        guard parameters <= PathParameters.countMax else {
            throw Ambiguity(description: "\(route.pattern) has more than \(PathParameters.countMax) parameters")
        }
        guard !nodes[node].routes.contains(where: { $0.method == route.method }) else {
            throw Ambiguity(description: "\(route.method.rawValue) \(route.pattern) is served twice")
        }
        nodes[node].routes.append(route)
    }

    private mutating func makeParameter(of node: Int) -> Int {
        nodes.append(Node())
        nodes[node].parameter = nodes.count - 1
        return nodes.count - 1
    }

    private mutating func makeConstant(_ name: [UInt8], of node: Int) -> Int {
        nodes.append(Node())
        nodes[node].constants.append((name, nodes.count - 1))
        return nodes.count - 1
    }

    /// - Parameter path: the bytes of the request's path, percent-encoded.
    func match(_ method: HTTPMethod, _ path: UnsafeBufferPointer<UInt8>) -> Match {
        guard path.first == UInt8(ascii: "/") else { return .notFound }
        var parameters = PathParameters()
        guard let node = descend(0, path, from: path.count == 1 ? 2 : 1, &parameters) else { return .notFound }
        let routes = nodes[node].routes
        let wanted = method == .head ? .get : method
        if let route = routes.first(where: { $0.method == wanted }) { return .found(route, parameters) }
        var allowed = routes.map(\.method.rawValue)
        if allowed.contains("GET") { allowed.append("HEAD") }
        return .methodNotAllowed(allow: (allowed + ["OPTIONS"]).joined(separator: ", "))
    }

    /// Follows the path from a segment's beginning; a parameter is tried when the constant leads nowhere.
    private func descend(
        _ node: Int, _ path: UnsafeBufferPointer<UInt8>, from start: Int, _ parameters: inout PathParameters
    ) -> Int? {
        guard start <= path.count else { return nodes[node].routes.isEmpty ? nil : node }
        var end = start
        while end < path.count, path[end] != UInt8(ascii: "/") { end += 1 }
        let segment = UnsafeBufferPointer(rebasing: path[start..<end])
        for constant in nodes[node].constants where constant.name.elementsEqual(segment) {
            if let found = descend(constant.node, path, from: end + 1, &parameters) { return found }
        }
        guard let next = nodes[node].parameter, !segment.isEmpty, end < 65_536 else { return nil }
        parameters.append(start..<end)
        if let found = descend(next, path, from: end + 1, &parameters) { return found }
        parameters.removeLast()
        return nil
    }
}

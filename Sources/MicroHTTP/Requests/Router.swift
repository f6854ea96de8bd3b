/// One served address, with its handler.
public final class Route: Sendable {
    public let method: HTTPMethod
    /// The pattern, such as `/v1/bookings/{id}`: segments are constants or parameters in braces.
    public let pattern: String
    /// The maximum length of a body; longer ones are refused before they are read.
    public let bodyBytesMax: Int
    /// Decides from a request's head whether to read its body. `bytes` is the memory that the body needs at first. Only
    /// callers that may send a body take memory, within their budgets. If nil, every body is read.
    public typealias Admit = @Sendable (_ request: Request, _ bytes: Int) -> BodyAdmission
    public let admit: Admit?
    let handler: @Sendable (Request) -> Reply

    public init(
        _ method: HTTPMethod, _ pattern: String, bodyBytesMax: Int = 0,
        admit: Admit? = nil, handler: @escaping @Sendable (Request) -> Reply
    ) {
        self.method = method
        self.pattern = pattern
        self.bodyBytesMax = bodyBytesMax
        self.admit = admit
        self.handler = handler
    }
}

/// The decision about a request's body, made when the head is read.
public enum BodyAdmission {
    /// The body is read into memory. The reservation is released with the body; if it is nil, no budget counts the
    /// bytes.
    case admitted((any BodyReservation)?)
    /// The body is not read into memory, and the request gets this answer. The connection stays open after a short body,
    /// and is closed after a longer one.
    case refused(Response)
}

/// Finds the route of a request by its path's bytes; nothing is decoded and no text is made on the way.
///
/// A constant segment takes precedence over a parameter. The route of GET also serves HEAD.
public struct Router: Sendable {
    /// The error for two routes between which a request could not choose, or for a malformed pattern.
    public struct Ambiguity: Error, CustomStringConvertible, Sendable {
        public let description: String
    }

    enum Match {
        case found(Route, PathParameters)
        case notFound
        case methodNotAllowed(allow: String)
    }

    /// The ranges of its constant segments and its routes in the lists of all nodes.
    private struct Node: Sendable {
        var constants = 0..<0
        var routes = 0..<0
        var parameter: Int?
        let place: Int
    }

    private struct Constant: Sendable {
        let name: Range<Int>
        let node: Int
    }

    private var nodes: [Node] = []
    private var constants: [Constant] = []
    private var names: [UInt8] = []
    private var routes: [Route] = []

    /// The methods of all routes, as a value of `Allow`.
    private(set) var allow = ""

    public init(_ routes: [Route]) throws(Ambiguity) {
        var tree = RouteTree()
        for route in routes { try tree.add(route) }
        _ = flatten(tree)
        allow = Self.allow(self.routes)
    }

    /// Returns the methods of routes, as a value of `Allow`.
    private static func allow(_ routes: some Sequence<Route>) -> String {
        var methods: [String] = []
        for route in routes where !methods.contains(route.method.rawValue) { methods.append(route.method.rawValue) }
        if methods.contains("GET") { methods.append("HEAD") }
        return (methods + ["OPTIONS"]).joined(separator: ", ")
    }

    /// Adds a node and its descendants to the lists. Reading numbers counts no references.
    private mutating func flatten(_ tree: RouteTree) -> Int {
        let place = nodes.count
        nodes.append(Node(routes: routes.count..<routes.count + tree.routes.count, place: place))
        routes += tree.routes
        let flattened = tree.constants.map { constant in
            names += constant.name
            return Constant(name: names.count - constant.name.count..<names.count, node: flatten(constant.tree))
        }
        nodes[place].constants = constants.count..<constants.count + flattened.count
        constants += flattened
        nodes[place].parameter = tree.parameter.first.map { flatten($0) }
        return place
    }

    /// Returns the route for a path.
    ///
    /// - Parameter path: The bytes of the request's path, percent-encoded.
    func match(_ method: HTTPMethod, _ path: UnsafeBufferPointer<UInt8>) -> Match {
        guard path.first == UInt8(ascii: "/") else { return .notFound }
        var parameters = PathParameters()
        guard let node = descend(0, path, from: path.count == 1 ? 2 : 1, &parameters) else { return .notFound }
        let wanted = method == .head ? .get : method
        for index in nodes[node].routes where routes[index].method == wanted {
            return .found(routes[index], parameters)
        }
        return .methodNotAllowed(allow: Self.allow(routes[nodes[node].routes]))
    }

    /// Follows the path from the beginning of a segment. A parameter is tried if the constant segment leads to no
    /// route.
    private func descend(
        _ node: Int, _ path: UnsafeBufferPointer<UInt8>, from start: Int, _ parameters: inout PathParameters
    ) -> Int? {
        let node = nodes[node]
        guard start <= path.count else { return node.routes.isEmpty ? nil : node.place }
        var end = start
        while end < path.count, path[end] != UInt8(ascii: "/") { end += 1 }
        for index in node.constants where isNamed(constants[index].name, path, start..<end) {
            if let found = descend(constants[index].node, path, from: end + 1, &parameters) { return found }
        }
        guard let next = node.parameter, start < end, end < 65_536 else { return nil }
        parameters.append(start..<end)
        if let found = descend(next, path, from: end + 1, &parameters) { return found }
        parameters.removeLast()
        return nil
    }

    private func isNamed(_ name: Range<Int>, _ path: UnsafeBufferPointer<UInt8>, _ segment: Range<Int>) -> Bool {
        guard name.count == segment.count else { return false }
        for offset in 0..<name.count where names[name.lowerBound + offset] != path[segment.lowerBound + offset] {
            return false
        }
        return true
    }
}

/// The routes by the segments of their patterns, while they are collected.
private struct RouteTree {
    var constants: [(name: [UInt8], tree: RouteTree)] = []
    /// At most one.
    var parameter: [RouteTree] = []
    var routes: [Route] = []

    mutating func add(_ route: Route) throws(Router.Ambiguity) {
        guard route.pattern.hasPrefix("/") else {
            throw Router.Ambiguity(description: "\(route.pattern) is not a path")
        }
        let segments = route.pattern.utf8.dropFirst().split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        try add(route, below: route.pattern == "/" ? [] : segments[...], parameters: 0)
    }

    private mutating func add(
        _ route: Route, below segments: ArraySlice<Substring.UTF8View>, parameters: Int
    ) throws(Router.Ambiguity) {
        guard let segment = segments.first else {
            guard parameters <= PathParameters.countMax else {
                throw Router.Ambiguity(
                    description: "\(route.pattern) has more than \(PathParameters.countMax) parameters")
            }
            guard !routes.contains(where: { $0.method == route.method }) else {
                throw Router.Ambiguity(description: "\(route.method.rawValue) \(route.pattern) is registered twice")
            }
            return routes.append(route)
        }
        if segment.first == UInt8(ascii: "{"), segment.last == UInt8(ascii: "}") {
            if parameter.isEmpty { parameter.append(RouteTree()) }
            return try parameter[0].add(route, below: segments.dropFirst(), parameters: parameters + 1)
        }
        guard !segment.isEmpty else { throw Router.Ambiguity(description: "\(route.pattern) has an empty segment") }
        let name = Array(segment)
        let known = constants.firstIndex { $0.name == name }
        if known == nil { constants.append((name, RouteTree())) }
        try constants[known ?? constants.count - 1].tree.add(
            route, below: segments.dropFirst(), parameters: parameters)
    }
}

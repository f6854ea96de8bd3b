/// Why a server could not start.
public struct ServerError: Error, CustomStringConvertible, Sendable {
    public let description: String
}

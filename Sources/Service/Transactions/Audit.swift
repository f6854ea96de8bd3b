import Database

/// A way to recount what is kept. Returns one line for each difference.
struct Audit: Sendable {
    let name: String
    let run: @Sendable (Connection) throws -> [String]
}

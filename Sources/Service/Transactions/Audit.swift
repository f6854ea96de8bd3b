import Database

/// A way to recount what is stored. Returns one line for each difference.
struct Audit: Sendable {
    let name: String
    let run: @Sendable (Connection) throws -> [String]
}

/// The parts of the running service that features answer with. Made once, by `App`; whoever only lists routes, tables or
/// upkeep has none.
struct ServingParts: Sendable {
    /// The streams that are open: opening them by tickets, their subscriptions, closing them by revocations.
    let streams: StreamDirectory
    /// The orders of leaderboards, for ranks that are not counted anew.
    let boards: Leaderboards
    /// Whether the service can serve, and its numbers. Given the routes' metrics, and the server's, once they exist.
    let report: ServiceReport
    /// Which tables are declared, and who belongs where by their rows.
    let tables: TableRegister
    /// Who a token speaks for: of the token that is asked about, too.
    let authenticator: Authenticator
}

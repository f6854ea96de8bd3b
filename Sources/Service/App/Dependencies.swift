/// What the features' endpoints work with: made once, by the app, when all of it exists.
struct Dependencies: Sendable {
    let report: ServiceReport
    let boards: Leaderboards
    let streams: StreamsFeature.Parts
    let changes: ChangesFeature.Parts
    let explain: ExplainFeature.Parts
    let publish: PublishFeature.Parts
}

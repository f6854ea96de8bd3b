/// The dependencies of the features' endpoints. The app creates them once, when all parts exist.
struct Dependencies: Sendable {
    let report: ServiceReport
    let description: Description
    let boards: Leaderboards
    let streams: StreamsFeature.Parts
    let changes: ChangesFeature.Parts
    let explain: ExplainFeature.Parts
    let publish: PublishFeature.Parts
    let erasure: ErasureFeature.Parts
}

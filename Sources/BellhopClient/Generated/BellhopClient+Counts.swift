// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// All counts of the caller in one call.
    ///
    /// Absolute and uncapped. Poll with If-None-Match: a version that is still the newest costs a 304 and no database.
    ///
    /// `GET /v1/badges`
    public func getBadges(include: Bellhop.GetBadgesInclude? = nil) async throws -> Bellhop.Answer<Bellhop.Badges> {
        var call = try Bellhop.Call("GET", "/v1/badges")
        call.query("include", include)
        return try await answer(call)
    }

    /// All counts of the caller in one call.
    ///
    /// Absolute and uncapped. Poll with If-None-Match: a version that is still the newest costs a 304 and no database.
    ///
    /// `GET /v1/badges`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    public func getBadges(include: Bellhop.GetBadgesInclude? = nil, ifNoneMatch: String) async throws -> Bellhop.Answer<
        Bellhop.Badges
    >? {
        var call = try Bellhop.Call("GET", "/v1/badges")
        call.query("include", include)
        try call.header("If-None-Match", ifNoneMatch)
        return try await answerUnlessCurrent(call)
    }
}

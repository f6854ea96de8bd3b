// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// Get badge counts
    ///
    /// Returns the caller's counts as absolute numbers without a cap. Poll with `If-None-Match`: while the version is
    /// current, the answer is 304 and costs no database query.
    ///
    /// `GET /v1/badges`
    ///
    /// - Parameters:
    ///   - include: set to `conversations` to add the unread count of each conversation.
    public func getBadges(include: Bellhop.GetBadgesInclude? = nil) async throws -> Bellhop.Answer<Bellhop.Badges> {
        var call = try Bellhop.Call("GET", "/v1/badges")
        call.query("include", include)
        return try await answer(call)
    }

    /// Get badge counts
    ///
    /// Returns the caller's counts as absolute numbers without a cap. Poll with `If-None-Match`: while the version is
    /// current, the answer is 304 and costs no database query.
    ///
    /// `GET /v1/badges`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    ///
    /// - Parameters:
    ///   - include: set to `conversations` to add the unread count of each conversation.
    ///   - ifNoneMatch: the ETag of the client's version. While it is current, the answer is 304.
    public func getBadges(include: Bellhop.GetBadgesInclude? = nil, ifNoneMatch: String) async throws -> Bellhop.Answer<
        Bellhop.Badges
    >? {
        var call = try Bellhop.Call("GET", "/v1/badges")
        call.query("include", include)
        try call.header("If-None-Match", ifNoneMatch)
        return try await answerUnlessCurrent(call)
    }
}

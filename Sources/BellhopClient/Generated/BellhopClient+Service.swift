// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// The token as the service reads it.
    ///
    /// `GET /v1/me`
    public func getMe() async throws -> Bellhop.Answer<Bellhop.Me> {
        let call = try Bellhop.Call("GET", "/v1/me")
        return try await answer(call)
    }

    /// The constants that clients poll, wait and draw by.
    ///
    /// `GET /v1/config`
    public func getConfig() async throws -> Bellhop.Answer<Bellhop.Config> {
        let call = try Bellhop.Call("GET", "/v1/config")
        return try await answer(call)
    }

    /// The constants that clients poll, wait and draw by.
    ///
    /// `GET /v1/config`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    public func getConfig(ifNoneMatch: String) async throws -> Bellhop.Answer<Bellhop.Config>? {
        var call = try Bellhop.Call("GET", "/v1/config")
        try call.header("If-None-Match", ifNoneMatch)
        return try await answerUnlessCurrent(call)
    }
}

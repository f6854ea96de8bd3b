import MicroHTTP
import Values

/// Data about the service: the caller of a token, the constants for clients, health, metrics, and the API description.
enum MetaFeature {
    typealias Constants = @Sendable (inout JSONWriter, Settings) -> Void

    /// The path that has an address of its own if `metricsListen` is set.
    static let metricsPath = "/metrics"

    /// Creates the feature.
    ///
    /// - Parameters:
    ///   - report: Nil lists the routes without serving them, for `bellhop routes`.
    ///   - sets: The feature sets that are on.
    ///   - description: Nil as `report`.
    ///   - constants: The constants that each other feature writes into `/v1/config`.
    static func feature(
        _ report: ServiceReport?, sets: Set<FeatureSet>, description: Description?, constants: [Constants]
    ) -> Feature {
        func show(_ document: Description.Document) -> @Sendable (Call) throws -> Answer {
            Endpoint.serving(description) { call, description in
                .now(description.file(document).response(to: call.request))
            }
        }
        let endpoints = [
            Endpoint(.get, "/v1/me", access: .bearer, effort: .instant, showCaller),
            Endpoint(.get, "/v1/config", access: .anyone, effort: .instant) { try showConfig($0, sets, constants) },
            Endpoint(.get, "/healthz", access: .anyone, query: .any, effort: .instant) { _ in .now(alive) },
            Endpoint(.get, "/readyz", access: .anyone, query: .any) { _ in .now(readiness(report)) },
            Endpoint(
                .get, metricsPath, access: .anyone, query: .any,
                Endpoint.serving(report) { _, report in .later { report.metrics.answer($0) } }),
            Endpoint(.get, "/openapi.yaml", access: .anyone, query: .any, show(.yaml)),
            Endpoint(.get, "/openapi.json", access: .anyone, query: .any, show(.json)),
            Endpoint(.get, "/asyncapi.json", access: .anyone, query: .any, show(.events)),
        ]
        return Feature(name: "meta", endpoints: endpoints)
    }

    private static let alive = Response.json(200) { $0.member("status", "ok") }

    private static func readiness(_ report: ServiceReport?) -> Response {
        let reasons = report?.obstacles() ?? ["The service is not running."]
        guard !reasons.isEmpty else { return alive }
        return .problem(
            Failure(.unavailable, "not_ready", reasons.joined(separator: " "), retryAfterSeconds: 1))
    }

    /// `GET /v1/me`: the token as the service reads it, which shows why something is not visible.
    private static func showCaller(_ call: Call) throws -> Answer {
        let caller = call.caller
        return .now(
            .json { writer in
                writer.member("identity", caller.identity)
                caller.write(membersTo: &writer)
                writer.member("issuedAt", caller.issuedAt.microseconds == 0 ? nil : caller.issuedAt)
                writer.member("expiresAt", caller.expiresAt)
            })
    }

    /// `GET /v1/config`: the constants for polling, waiting and drawing in clients (R-CNT-RECON-2, R-CNT-RECON-4,
    /// R-CNT-POLL; R-CNT-G4). It contains the constants of the service and of each feature.
    private static func showConfig(
        _ call: Call, _ sets: Set<FeatureSet>, _ constants: [Constants]
    ) throws -> Answer {
        let settings = call.settings
        let body = JSONWriter.object { writer in
            writer.member("features", FeatureSet.allCases.filter(sets.contains).map(\.rawValue))
            writer.member(
                "rateLimit", ["requests": settings.rateLimitUser, "windowSeconds": Int(Limits.rateWindowSeconds)])
            writer.member(
                "requests",
                ["bodyBytesMax": Limits.bodyBytesMax, "idempotencyKeySeconds": Int(Limits.idempotencySeconds)])
            for write in constants { write(&writer, settings) }
        }
        // The constants change only with the settings, so their bytes serve as the version.
        return .now(.json(200, body, tag: EntityTag(ofAll: body)))
    }
}

import Database
import Domain
import MicroHTTP

extension MetaFeature {
    static func endpoints(_ report: ServiceReport?) -> [Endpoint] {
        [
            Endpoint(.get, "/v1/me", access: .bearer, effort: .instant, showCaller),
            Endpoint(.get, "/v1/config", access: .anyone, effort: .instant, showConfig),
            Endpoint(.get, "/healthz", access: .anyone, effort: .instant) { _ in .now(alive) },
            Endpoint(.get, "/readyz", access: .anyone, effort: .work) { _ in
                .now(readiness(report))
            },
            Endpoint(.get, "/metrics", access: .anyone, effort: .work) { _ in
                .now(
                    Response(
                        status: 200, headers: [("Content-Type", "text/plain; version=0.0.4; charset=utf-8")],
                        body: .bytes(Array((report?.metrics() ?? "").utf8))))
            },
            Endpoint(.get, "/openapi.yaml", access: .anyone, effort: .instant) { _ in .now(description) },
        ]
    }

    private static let alive = Response.json(200, JSONWriter.object { $0.member("status", "ok") })

    private static func readiness(_ report: ServiceReport?) -> Response {
        let reasons = report?.obstacles() ?? ["The service is not running."]
        guard reasons.isEmpty else {
            return .problem(
                Failure(
                    .unavailable, "not_ready", reasons.joined(separator: " "), retryAfterSeconds: 1))
        }
        return alive
    }

    private static let description = Response(
        status: 200,
        headers: [("Content-Type", "application/yaml"), ("Cache-Control", "no-cache")],
        body: .shared(SharedBody(PackageResources.openapi_yaml)))

    /// `GET /v1/me`: the token as the service reads it, so that nobody has to guess why something is not visible.
    private static func showCaller(_ call: Call) throws -> Answer {
        _ = try call.query([])
        let caller = call.caller
        let body = JSONWriter.object { writer in
            caller.write(membersTo: &writer)
            writer.member("issuedAt", caller.issuedAt.microseconds == 0 ? nil : caller.issuedAt)
            writer.member("expiresAt", caller.expiresAt)
        }
        return .now(.json(200, body))
    }

    /// `GET /v1/config`: the constants that clients poll, wait and draw by (CNT R-RECON-2, -4, CONST-POLL; G4).
    private static func showConfig(_ call: Call) throws -> Answer {
        _ = try call.query([])
        let settings = call.settings
        let body = JSONWriter.object { writer in
            writer.member("polling") { writer in
                writer.member("connectedSeconds", PollIntervals.connectedSeconds)
                writer.member("disconnectedSeconds", PollIntervals.disconnectedSeconds)
                writer.member("tabSwitchStaleSeconds", PollIntervals.tabSwitchStaleSeconds)
            }
            writer.member("rateLimit") { writer in
                writer.member("requests", settings.rateLimitUser)
                writer.member("windowSeconds", Int(Limits.rateWindowSeconds))
            }
            writer.member("stream") { writer in
                writer.member("heartbeatSeconds", settings.heartbeatSeconds)
                writer.member("retryMilliseconds", StreamConstants.retryMilliseconds)
                writer.member("resumableHours", settings.eventsKeptHours)
                writer.member("topicsMax", StreamConstants.topicsMax)
                writer.member("perUserMax", settings.streamsPerUserMax)
            }
            writer.member("requests") { writer in
                writer.member("bodyBytesMax", Limits.bodyBytesMax)
                writer.member("idempotencyKeySeconds", Int(Limits.idempotencySeconds))
            }
            writer.member("subscriptions", writeSubscriptionLimits)
            writer.member("invalidations") { writer in
                writer.member("windowMilliseconds", TableLimits.windowDefaultMilliseconds)
                writer.member("keysPerStreamMax", TableLimits.pendingKeysPerStreamMax)
                writer.member("causesPerEventMax", TableLimits.causesPerBatchMax)
            }
            writer.member("changes") { writer in
                writer.member("bodyBytesMax", ChangeLimits.bodyBytesMax)
                writer.member("itemsMax", ChangeLimits.itemsMax)
                writer.member("itemBytesMax", ChangeLimits.itemBytesMax)
                writer.member("duplicatesKnownSeconds", Int(ChangeConstants.duplicatesKnownSeconds))
                writer.member("tables", settings.tables.tables.count)
            }
            writeSocialLimits(&writer)
        }
        // The constants change with the settings only: the bytes are their own version.
        return .now(.json(200, body, etag: String(Self.fingerprint(body), radix: 36)))
    }

    /// What a client splits its filters by (ENG E-2).
    private static func writeSubscriptionLimits(_ writer: inout JSONWriter) {
        writer.member("perStreamMax", FilterLimits.subscriptionsPerStreamMax)
        writer.member("requestBytesMax", StreamConstants.subscriptionsBytesMax)
        writer.member("idBytesMax", FilterLimits.subscriptionIdBytesMax)
        writer.member("selectedColumnsMax", FilterLimits.selectedColumnsMax)
        writer.member("filterBytesMax", FilterLimits.filterBytesMax)
        writer.member("conditionsMax", FilterLimits.conditionsMax)
        writer.member("valuesMax", FilterLimits.valuesMax)
        writer.member("valueBytesMax", FilterLimits.valueBytesMax)
        writer.member("valuesPerStreamMax", FilterLimits.valuesPerStreamMax)
        writer.member("searchesPerStreamMax", FilterLimits.searchesPerStreamMax)
        writer.member("patternRunMax", FilterLimits.patternRunMax)
    }

    /// What clients of conversations, requests, posts, DJ mode and leaderboards count and draw by.
    private static func writeSocialLimits(_ writer: inout JSONWriter) {
        writer.member("conversations") { writer in
            writer.member("membersMax", ConversationLimits.membersMax)
            writer.member("conversationsOfUserMax", ConversationLimits.conversationsOfUserMax)
            writer.member("textBytesMax", ConversationLimits.textBytesMax)
            writer.member("rewindMax", ConversationLimits.rewindMax)
            writer.member("previewCharactersMax", ConversationLimits.previewCharactersMax)
        }
        writer.member("userRequests") { writer in
            writer.member("openMax", RequestLimits.openMax)
        }
        writer.member("posts") { writer in
            writer.member("textBytesMax", PostLimits.textBytesMax)
            writer.member("mediaMax", PostLimits.mediaMax)
            writer.member("mediaBytesMax", PostLimits.mediaBytesMax)
            writer.member("followedMax", PostLimits.followedMax)
            writer.member("newCountMax", PostLimits.newCountMax)
            writer.member("pageMax", PostLimits.pageMax)
            writer.member("tellingSeconds", Int(PostLimits.tellingSeconds))
        }
        writer.member("dj") { writer in
            writer.member("tracksMax", DJLimits.tracksMax)
            writer.member("tracksPerUserMax", DJLimits.tracksPerUserMax)
            writer.member("updatesPerSecondMax", DJLimits.updatesPerSecondMax)
            writer.member("presenceSeconds", Int(PresenceLimits.lifetimeSeconds))
            writer.member("codeSeconds", Int(PresenceLimits.codeSeconds))
        }
        writer.member("leaderboards") { writer in
            writer.member("entriesMax", LeaderboardLimits.entriesMax)
            writer.member("topDefault", LeaderboardLimits.topDefault)
            writer.member("topMax", LeaderboardLimits.topMax)
            writer.member("aroundDefault", LeaderboardLimits.aroundDefault)
            writer.member("aroundMax", LeaderboardLimits.aroundMax)
            writer.member("watchedTop", LeaderboardLimits.watchedTop)
            writer.member("updateSeconds", Int(LeaderboardLimits.updatePauseSeconds))
        }
    }

    /// FNV-1a: the same in every process, as a version must be.
    private static func fingerprint(_ bytes: [UInt8]) -> UInt64 {
        bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
    }
}

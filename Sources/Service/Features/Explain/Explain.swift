import MicroHTTP
import Realtime
import Rows
import Values

/// Explanations of why an event reached, or did not reach, a user. They help operators of an app to investigate a
/// report.
enum ExplainFeature {
    /// The dependencies of explanations.
    struct Parts: Sendable {
        let memberships: MembershipRegistry
        let authenticator: Authenticator
        let log: LogIdentity
        /// Memberships by rows of the service whose keys streams have.
        let live: [LiveGrant]
        let tables: SubscribableTables
    }

    /// Creates the feature.
    ///
    /// - Parameter parts: Nil lists the route without serving it.
    static func feature(_ parts: Parts?) -> Feature {
        let endpoint = Endpoint(
            .post, "/v1/explain", access: .service, needs: .read, bodyBytesMax: ExplainLimits.bodyBytesMax,
            Endpoint.serving(parts, explain))
        return Feature(name: "explain", set: .rows, endpoints: [endpoint])
    }

    /// `POST /v1/explain`: whether the bearer of a token receives an event, and for which reasons.
    @Sendable private static func explain(_ call: Call, _ parts: Parts) throws -> Answer {
        var fields = try call.fields()
        let eventId = fields.string("eventId", bytesMax: Cursor.textBytesMax)
        let token = fields.optionalString("token", bytesMax: Limits.tokenBytesMax)
        let claims = fields.value("claims")
        let topics = fields.strings("topics", countMax: StreamLimits.topicsMax) ?? []
        let listed = fields.values("tables", countMax: FilterLimits.subscriptionsPerStreamMax) ?? []
        if (token == nil) == (claims == nil) { fields.reject("", "must contain either token or claims") }
        try fields.finish()
        let tables = try TableSubscription.list(listed, at: "/tables", columns: parts.tables.columns)
        let (ids, noEvent) = (parts.log.ids, Failure.invalid("/eventId", "is not an event id"))
        guard let cursor = Cursor(eventId) else { throw noEvent }
        guard cursor.epoch == ids.epoch else {
            throw Failure.invalid(
                "/eventId", "belongs to another event log: the database was recreated or restored since")
        }
        guard let sequence = ids.sequence(of: cursor) else { throw noEvent }
        let claimed = try person(token: token, claims: claims, call, parts)
        guard call.caller.spansTenants || claimed.tenant == call.caller.tenant else {
            throw Failure.invalid(token == nil ? "/claims" : "/token", "belongs to another tenant than the caller")
        }
        let tenant = claimed.tenant
        return .read { tx in
            guard let event = try EventLog.event(sequence, in: tx.db), !event.isInternal,
                call.caller.spansTenants || event.tenant == tenant
            else { throw Failure.notFound("event") }
            let explanation = Explanation(
                of: event, at: cursor, to: claimed, topics: topics, subscriptions: tables,
                memberships: parts.memberships.known.memberships,
                stored: try KeyGrants.origins(of: claimed.scope, by: parts.live, in: tx.db))
            return Response.json(200, explanation)
        }
    }

    /// Returns the caller of the token, or of the given claims.
    private static func person(
        token: String?, claims: JSONValue?, _ call: Call, _ parts: Parts
    ) throws(Failure) -> Caller {
        if let claims {
            guard case .object(var members) = claims else {
                throw Failure.invalid("/claims", "must be an object, not \(claims.typeName)")
            }
            // Only the claims about the person count, not the token's lifetime.
            members["exp"] = .integer(call.now.adding(seconds: 60).seconds)
            members["iat"] = nil
            members["nbf"] = nil
            do throws(Failure) {
                let issuers = call.settings.issuers
                guard let rules = IssuerRules.of(members["iss"], among: issuers) ?? issuers.first else {
                    throw Claims.notOurs("iss", members["iss"])
                }
                return try Claims(settings: call.settings, rules: rules).caller(
                    of: .object(members), signedBy: .nobody, at: call.now)
            } catch {
                throw Failure.invalid("/claims", error.detail)
            }
        }
        return try Authenticator.caller(
            ofBody: { () throws(Failure) in try parts.authenticator.identity(of: token ?? "") },
            pendingCode: "explain.token_pending")
    }
}

/// The limits of explanations, each with its reason.
enum ExplainLimits {
    /// Room for a token, and as many filtered ids as one stream may have.
    static let bodyBytesMax = 1 << 20
    /// Listed keys. An event can have one for each member of a large class; a longer list is not helpful.
    static let keysMax = 512
}

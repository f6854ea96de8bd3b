import Database
import Domain
import MicroHTTP
import Values

extension WebhooksFeature {
    static let endpoints = [
        Endpoint(.get, "/v1/webhooks", access: .service, showState),
        Endpoint(.get, "/v1/webhooks/dead", access: .service, query: ["limit", "cursor"], listDead),
        Endpoint(.post, "/v1/webhooks/dead/{id}/retry", access: .service, retry),
    ]

    private static let isOwn: SQL = "route = 'webhook'"

    /// A webhook that is no longer retried. Its content is left out, because it belongs to the user and goes only to
    /// the receiver.
    struct DeadWebhook: Record, JSONObjectWritable {
        var id: ID<OutboxDraft> = ""
        var type = WebhookType.unreached
        var userId: ID<User>?
        var subject = ""
        var reason = WebhookFailureReason.expired
        var attempts = 0
        var error: String?
        var createdAt = Timestamp(microseconds: 0)
        var triedAt: Timestamp?
        var diedAt = Timestamp(microseconds: 0)

        static let columns = columns()

        mutating func visit(_ members: inout some MemberVisitor) {
            members.member("id", &id)
            members.member("type", &type)
            members.member("userId", &userId)
            members.member("subjectId", in: "subject", &subject)
            members.member("reason", &reason)
            members.member("attempts", &attempts)
            members.member("lastError", in: "error", &error)
            members.member("createdAt", &createdAt)
            members.member("triedAt", &triedAt)
            members.member("diedAt", in: "settled_at", &diedAt)
        }
    }

    /// `GET /v1/webhooks`: the state of the tenant's outbox.
    private static func showState(_ call: Call) throws -> Answer {
        let isOn = call.settings.webhook != nil
        return .read { tx in
            let waiting = try tx.db.row(
                """
                SELECT count(*), min(due_at), max(attempts) FROM \(Outbox.messages, visibleTo: tx.scope) WHERE \(isOwn) AND state = 0
                """
            ) { (count: try $0.integer(0), oldest: try $0.optionalMoment(1), attempts: try $0.optionalInteger(2)) }
            let dead = try tx.db.integer(
                "SELECT count(*) FROM \(Outbox.messages, visibleTo: tx.scope) WHERE \(isOwn) AND state = 2")
            let error = try tx.db.row(
                """
                SELECT error, tried_at FROM \(Outbox.messages, visibleTo: tx.scope)
                WHERE \(isOwn) AND state <> 1 AND error IS NOT NULL ORDER BY tried_at DESC LIMIT 1
                """
            ) { (reason: try $0.text(0), at: try $0.moment(1)) }
            return Response.json(200) { writer in
                writer.member("enabled", isOn)
                writer.member("waiting", waiting?.count ?? 0)
                writer.member("oldestDueAt", waiting?.oldest)
                writer.member("attemptsMax", waiting?.attempts ?? 0)
                writer.member("dead", dead ?? 0)
                writer.member("lastError", error?.reason)
                writer.member("lastErrorAt", error?.at)
            }
        }
    }

    /// `GET /v1/webhooks/dead`: the webhooks that are no longer retried, newest first.
    private static func listDead(_ call: Call) throws -> Answer {
        let page = try call.page(limitMax: WebhookLimits.pageMax)
        let pageCondition: SQL? = page.after.map { "id < \($0)" }
        let listing: SQL = """
            SELECT \(DeadWebhook.columns) FROM \(Outbox.messages, visibleTo: call.caller.scope)
            WHERE \(SQL.all([isOwn, "state = 2", pageCondition])) ORDER BY id DESC LIMIT \(page.rowsMax)
            """
        return .query(listing) { rows in page.response(try rows.rows(DeadWebhook.init(row:)), by: \.id.text) }
    }

    /// `POST /v1/webhooks/dead/{id}/retry`: makes it due now, and retries it for another day. Its notification is still
    /// unseen; otherwise it would not exist.
    private static func retry(_ call: Call) throws -> Answer {
        guard call.settings.webhook != nil else {
            throw Failure(
                .conflict, "webhook.off",
                "Webhooks are disabled, because \(Settings.variable(\.$webhookURL)) is not set.")
        }
        let id = try call.pathID(0, OutboxDraft.self)
        return .write { tx in
            let dead = try tx.db.row(
                """
                SELECT \(DeadWebhook.columns) FROM \(Outbox.messages, visibleTo: tx.scope) WHERE \(isOwn) AND state = 2 AND id = \(id)
                """, DeadWebhook.init(row:)
            ).required("dead webhook")
            try Outbox.revive(id, tx)
            return Response.json(202, dead)
        }
    }
}

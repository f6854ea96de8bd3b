import Cryptography
import Database
import MicroHTTP
import Rows
import Synchronization
import Values

/// Table changes: rows of apps whose data is stored elsewhere, accepted from their feeds and published as events.
enum ChangesFeature {
    /// The dependencies of the endpoint.
    struct Parts: Sendable {
        let intake: ChangeIntake
        let metrics: ChangeMetrics
        /// Whether streams are served more slowly than changes arrive. Then no further changes are accepted.
        let isCongested: @Sendable () -> Bool
    }

    /// Creates the feature.
    ///
    /// - Parameter parts: Nil lists tables and routes without serving them, for `bellhop routes` and `policies`.
    static func feature(_ parts: Parts?) -> Feature {
        let intake = Endpoint(
            .post, "/v1/changes", access: .feed, needs: .rows, query: ["format"], countsCalls: true,
            bodyBytesMax: ChangeLimits.bodyBytesMax,
            Endpoint.serving(parts, takeChanges))
        return Feature(
            name: "changes", set: .rows, tables: [deliveries], migrations: [migration], endpoints: [intake],
            ticks: [pruning, trimming],
            constants: { writer, settings in
                writer.member(
                    "changes",
                    [
                        "bodyBytesMax": ChangeLimits.bodyBytesMax, "itemsMax": ChangeLimits.itemsMax,
                        "itemBytesMax": ChangeLimits.itemBytesMax,
                        "duplicatesKnownSeconds": Int(ChangeDeduplication.deliverySeconds),
                        "tables": settings.tables.tables.count,
                    ])
            })
    }

    /// `POST /v1/changes`: table changes in any known format. 202 means that they are on disk and will be delivered.
    ///
    /// An error in one item rejects only that item. A feed whose whole delivery is refused because of one row would
    /// retry it forever.
    @Sendable private static func takeChanges(_ call: Call, _ parts: Parts) throws -> Answer {
        guard !parts.isCongested() else {
            throw Failure(
                .unavailable, "changes.congested", "Streams receive changes more slowly than they arrive.",
                retryAfterSeconds: 1)
        }
        let format = try call.query.string("format").map { name throws(Failure) in
            guard let format = ChangeFormat(rawValue: name) else {
                let known = ChangeFormat.allCases.map(\.rawValue).joined(separator: ", ")
                throw Failure.invalid("?format", "must be one of \(known)")
            }
            return format
        }
        let delivery = try ChangeDelivery(headers: call.request.headers.lazy.map { ($0.name, $0.value) })
        guard delivery.isJSON else { throw Call.notJSON }
        let batch = try ChangeBatch(reading: call.request.body, delivery: delivery, format: format)
        return .write { tx in
            let result = ChangeResult(of: batch, try parts.intake.take(batch.changes, tx))
            tx.afterCommit { parts.metrics.add(result) }
            return Response.json(202, result)
        }
    }

    // MARK: Deliveries

    /// The ids of accepted changes, which identify repeated deliveries.
    static let deliveries = Table(
        "change_deliveries", read: [], write: [],
        person: .nothing("digests of the ids that feeds give their deliveries"))

    static let migration = Migration(
        "0001_changes",
        sql: [
            """
            CREATE TABLE change_deliveries (
                tenant TEXT NOT NULL,
                id TEXT NOT NULL,
                created_at INTEGER NOT NULL,
                PRIMARY KEY (tenant, id)
            ) STRICT
            """,
            "CREATE INDEX change_deliveries_age ON change_deliveries (tenant, created_at)",
        ])

    private static let bookkeeping = Unscoped.bookkeeping("only the feed that sent a delivery asks for its id")
    private static let allDeliveries: SQL =
        "\(deliveries, unscoped: .bookkeeping("looks for the tenants with old ids"))"

    /// Returns the stored form of an id, which a feed may make of persons' ids.
    private static func digest(of id: String, _ tx: Transaction) -> String {
        RFC4648.encodeURL(SHA256.hash([tx.tenant.text, id].joined(separator: "\0").utf8))
    }

    /// Stores an id; returns false if it is already stored.
    static func addDelivery(_ id: String, _ tx: Transaction) throws -> Bool {
        try tx.db.run(
            """
            INSERT INTO \(deliveries, within: tx.tenant, bookkeeping) (tenant, id, created_at)
            VALUES (\(tx.tenant), \(digest(of: id, tx)), \(tx.now)) ON CONFLICT (tenant, id) DO NOTHING
            """) > 0
    }

    static func removeDelivery(_ id: String, _ tx: Transaction) throws {
        try tx.db.run(
            "DELETE FROM \(deliveries, within: tx.tenant, bookkeeping) WHERE id = \(digest(of: id, tx))"
        )
    }

    /// Deletes the ids that are older than a sender's retries.
    static let pruning = Tick.forgetting(
        name: "changes-tidying", everySeconds: 5,
        due: { age in
            Tenants.all(
                where: """
                    EXISTS (SELECT 1 FROM \(allDeliveries) AS d
                        WHERE d.tenant = t.tenant AND d.created_at <= \(oldest(age)))
                    """)
        }
    ) { age, tx in try delete(through: oldest(age), tx) }

    private static func oldest(_ age: AgeTime) -> Timestamp { age.end(ofSeconds: ChangeDeduplication.deliverySeconds) }

    /// Deletes the oldest ids of a feed that has more than the limit.
    static let trimming = Tick(
        name: "changes-trimming", everySeconds: 5,
        due: { _ in
            Tenants.all(
                where: """
                    EXISTS (SELECT 1 FROM \(allDeliveries) AS d WHERE d.tenant = t.tenant
                        ORDER BY d.created_at DESC LIMIT 1 OFFSET \(ChangeDeduplication.deliveriesMax))
                    """)
        }, isTidying: true
    ) { tx in
        let surplus = try tx.db.row(
            """
            SELECT created_at FROM \(deliveries, within: tx.tenant, bookkeeping)
            ORDER BY created_at DESC LIMIT 1 OFFSET \(ChangeDeduplication.deliveriesMax)
            """
        ) { try $0.moment(0) }
        if let surplus { try delete(through: surplus, tx) }
    }

    private static func delete(through end: Timestamp, _ tx: Transaction) throws {
        try tx.db.run(
            """
            DELETE FROM \(deliveries, within: tx.tenant, bookkeeping) WHERE id IN (
                SELECT id FROM \(deliveries, within: tx.tenant, bookkeeping)
                WHERE created_at <= \(end)
                ORDER BY created_at LIMIT \(ChangeDeduplication.prunedAtOnceMax))
            """)
    }
}

/// The limits of stored delivery ids, each with its reason.
enum ChangeDeduplication {
    /// How long the id of a change is stored; published in `/v1/config`. Senders retry for some hours. A sender that
    /// retries for days has received a failure each time.
    static let deliverySeconds: Int64 = 72 * 3600
    /// Ids that are stored for one feed, about 150 bytes each. Without this limit, a busy feed fills the disk.
    static let deliveriesMax = 1_000_000
    /// Ids that are deleted at once, for which all writes wait. 50,000 take some 100 ms. A feed of 10,000 per second
    /// adds as many until the next time.
    static let prunedAtOnceMax = 50_000
}

/// The result of one delivery, in numbers of items.
struct ChangeResult: JSONWritable, Sendable {
    /// Accepted: published to its audience, or without an audience or any effect.
    private(set) var accepted = 0
    /// Accepted before, recognized by their ids.
    private(set) var duplicates = 0
    private(set) var rejected: [ChangeRejection] = []

    /// - Parameter outcomes: The outcomes of the delivery's changes, in order.
    init(of batch: ChangeBatch, _ outcomes: [ChangeOutcome]) {
        var outcomes = outcomes[...]
        for (index, item) in batch.items.enumerated() {
            switch item {
            case .ignored: accepted += 1
            case .rejected(let rejection): rejected.append(rejection)
            case .change: add(outcomes.removeFirst(), at: index, of: batch)
            }
        }
    }

    private mutating func add(_ outcome: ChangeOutcome, at index: Int, of batch: ChangeBatch) {
        switch outcome {
        case .accepted: accepted += 1
        case .duplicate: duplicates += 1
        case .rejected(let fault): rejected.append(batch.rejection(of: index, at: fault.pointer, fault.reason))
        }
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("accepted", accepted)
            writer.member("duplicates", duplicates)
            writer.member("rejected", rejected)
        }
    }
}

/// Counters of the outcomes of delivered items.
final class ChangeMetrics: Sendable {
    private let accepted = Atomic<Int>(0)
    private let duplicates = Atomic<Int>(0)
    private let rejected = Atomic<Int>(0)

    init(_ registry: MetricsRegistry) {
        registry.register { [self] text in
            let counts = [
                ("accepted", accepted.load(ordering: .relaxed)), ("duplicate", duplicates.load(ordering: .relaxed)),
                ("rejected", rejected.load(ordering: .relaxed)),
            ]
            text.family(
                "bellhop_changes_total", .counter, "Received table changes, by result.", by: "result", samples: counts)
        }
    }

    func add(_ result: ChangeResult) {
        accepted.add(result.accepted, ordering: .relaxed)
        duplicates.add(result.duplicates, ordering: .relaxed)
        rejected.add(result.rejected.count, ordering: .relaxed)
    }
}

import Database
import Rows
import Values
import Visibility

extension MembershipRegistry {
    private static let leaving = Unscoped.bookkeeping("memberships of an erased person end")

    /// Facts that one transaction of an erasure looks through. One event names the facts of the person.
    private static let lookedThroughAtOnce = 500

    /// Ends the memberships that the app's rows give an erased person, and deletes their facts.
    ///
    /// One row of each membership keeps the number of its last change, after which all replicas number further changes.
    static let personStep = PersonStep("memberships") { person, place, tx in
        let declared = tx.settings.tables.tables.flatMap(\.memberships).filter { $0.subject.shape == "user:{}" }
        guard !declared.isEmpty else { return nil }
        try tx.db.lock(["bellhop:memberships"])
        let after = PairedPlace(reading: place)
        let page = try tx.db.rows(
            """
            SELECT membership, identity, subject, row_id, object FROM \(facts, within: tx.tenant, leaving)
            WHERE (membership, identity) > (\(after.first), \(after.second))
            ORDER BY membership, identity LIMIT \(lookedThroughAtOnce)
            """
        ) { row in
            (
                identity: try row.text(1), subject: try row.optionalText(2),
                fact: MembershipFact(
                    tenant: tx.tenant, membership: try row.text(0), row: try row.optionalText(3),
                    subject: person.text, object: try row.optionalText(4), counts: false)
            )
        }
        let isMore = page.count == lookedThroughAtOnce
        let next = isMore ? page.last.map { PairedPlace($0.fact.membership, $0.identity).text } : nil
        let found = page.filter { fact in
            fact.subject == person.text && declared.contains { $0.name == fact.fact.membership }
        }
        guard !found.isEmpty else { return next }
        let known = Int64(try tx.db.integer("SELECT max(version) FROM \(allFacts)") ?? 0)
        var update = MembershipUpdate()
        update.facts = found.map(\.fact)
        for membership in declared {
            guard let key = membership.subject.key(of: { _ in person.text }) else { continue }
            update.holders.insert(.init(tenant: tx.tenant, key: key))
        }
        let rules = rules(of: tx.settings.tables)
        let version = try store(update, by: rules, after: known, tx)
        for (identity, _, fact) in found {
            try tx.db.run(
                """
                DELETE FROM \(facts, within: tx.tenant, leaving)
                WHERE membership = \(fact.membership) AND identity = \(identity)
                """)
        }
        let rows = Set(found.map(\.fact.membership)).map { membership in
            MembershipFact(
                tenant: tx.tenant, membership: membership, row: nil, subject: ID<User>.erased.text, object: nil,
                counts: false)
        }
        try insert(rows, by: rules, version: version, tx)
        return next
    }
}

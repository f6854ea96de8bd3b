import Values

/// The state of one row in a membership, or the fact that a subject is known. The last fact of each ``identity`` is
/// stored durably and loaded by ``Memberships/restore(_:)``.
public struct MembershipFact: Sendable, Hashable {
    public let tenant: ID<Tenant>
    public let membership: String
    /// The primary key of the row, as ``TableDeclaration/recordId(of:)`` writes it. Nil records that the subject is
    /// known: its rows moved to others, and its old claims must not count again.
    public let row: String?
    /// The values of the two columns; nil for null.
    public var subject: String?
    public var object: String?
    /// Whether the row is in a state that counts. A deleted row stays stored as one that does not count, because
    /// otherwise an older claim would count again.
    public var counts: Bool
    /// Whether an earlier rule of the membership gave the fact (``TableCatalog/rules``). Such a fact does not count, and
    /// its columns are not used: the row has to be read or sent again.
    public internal(set) var isOutdated = false

    public init(
        tenant: ID<Tenant>, membership: String, row: String?, subject: String?, object: String?, counts: Bool
    ) {
        self.tenant = tenant
        self.membership = membership
        self.row = row
        self.subject = subject
        self.object = object
        self.counts = counts
    }

    public static func == (left: Self, right: Self) -> Bool {
        left.tenant == right.tenant && left.membership == right.membership && left.row.hasBytes(of: right.row)
            && left.subject.hasBytes(of: right.subject) && left.object.hasBytes(of: right.object)
            && left.counts == right.counts && left.isOutdated == right.isOutdated
    }

    /// Unique within a tenant and a membership. A later fact replaces an earlier one of the same identity.
    public var identity: String { row.map { "row:\($0)" } ?? "subject:\(subject ?? "")" }
}

/// The effect of a change on memberships.
public struct MembershipUpdate: Sendable, Hashable {
    public struct Holders: Sendable, Hashable {
        public let tenant: ID<Tenant>
        /// Every stream whose scope has this key needs its keys to be recomputed (``Memberships/keys(of:)``).
        public let key: String

        public init(tenant: ID<Tenant>, key: String) {
            self.tenant = tenant
            self.key = key
        }
    }

    public var holders: Set<Holders> = []
    /// The changed facts, to be stored in the same transaction as the change.
    public var facts: [MembershipFact] = []
    /// The reason why a part of the change could not be applied. Keys that the change revokes are revoked nevertheless.
    public internal(set) var refusal: Failure?

    public init() {}

    public var isEmpty: Bool { holders.isEmpty && facts.isEmpty && refusal == nil }
}

/// The memberships according to ingested rows: a pure structure in memory, cheap to copy.
///
/// Rows take precedence over a token's claims about the same subject; claims count only for subjects without rows. A
/// subject has rows in two cases. Either some row named the subject: a teacher that had a class and has lost it is
/// known to have no class. Or the granted key is the row's own: a class whose row is known has the teacher that the row
/// names, whatever tokens claim.
///
/// It is bounded by ``TableLimits/membershipEntriesMax`` and evicts nothing, because without an entry old claims would
/// count again.
public struct Memberships: Sendable {
    struct FactName: Hashable {
        let membership: Int
        let row: ID<MembershipFact>

        init(membership: Int, row: String) { (self.membership, self.row) = (membership, ID(row)) }
    }

    struct SubjectName: Hashable {
        let membership: Int
        let tenant: ID<Tenant>
        let value: ID<SubjectName>

        init(membership: Int, tenant: ID<Tenant>, value: String) {
            (self.membership, self.tenant, self.value) = (membership, tenant, ID(value))
        }
    }

    /// The entity that memberships grant, such as a class.
    enum Granted {}

    /// The facts of each row of a membership, one per tenant, because two databases may use the same row ids.
    var facts = ShardedDictionary<FactName, [MembershipFact]>()
    /// For each subject, how many rows grant each object. An empty dictionary means that the subject is known and has
    /// no objects.
    var subjects = ShardedDictionary<SubjectName, [ID<Granted>: Int]>()
    let memberships: [Rule]
    /// The memberships in groups that grant keys of one shape, in the order of evaluation, without the shapes that no
    /// scope has (``ContactPolicy/hiddenShapes``).
    let grantShapes: [[Int]]
    /// All memberships by the shape of the keys that they grant.
    let membershipsByShape: [String: [Int]]
    private(set) var factCount = 0
    /// The number of rows of each membership whose fact is outdated.
    var outdatedCounts: [Int]
    private let entriesMax: Int

    /// A membership with its place among the tables.
    struct Rule: Sendable {
        let declaration: MembershipDeclaration
        let table: String
        let schema: String
        /// Whether the row alone decides the holder of the key: the granted key is made from the row's whole primary
        /// key, and no other membership grants keys of its shape.
        let rowDecides: Bool
        let subjectShape: String
        /// Whether the subject is a user by the id in the token.
        let isOfUser: Bool

        init(_ declaration: MembershipDeclaration, of table: TableDeclaration, isAlone: Bool) {
            (self.declaration, self.table, schema) = (declaration, table.name, table.schema)
            rowDecides = isAlone && table.primaryKey == [declaration.grantColumn]
            subjectShape = declaration.subject.shape
            isOfUser = subjectShape == MembershipDeclaration.userShape
        }
    }

    /// Creates empty memberships.
    ///
    /// - Parameter entriesMax: ``TableLimits/membershipEntriesMax``; tests use other numbers.
    public init(_ catalog: TableCatalog, entriesMax: Int = TableLimits.membershipEntriesMax) {
        let groups = catalog.membershipOrder
        memberships = groups.flatMap { group in
            group.map { table, declaration in Rule(declaration, of: table, isAlone: group.count == 1) }
        }
        let places = Dictionary(grouping: memberships.indices) { [memberships] index in
            memberships[index].declaration.grants.shape
        }
        membershipsByShape = places
        grantShapes = groups.compactMap { $0.first?.declaration.grants.shape }
            .filter { !catalog.contacts.hiddenShapes.contains($0) }.compactMap { places[$0] }
        self.entriesMax = entriesMax
        outdatedCounts = Array(repeating: 0, count: memberships.count)
    }

    /// The number of stored facts and subjects.
    public var entryCount: Int { factCount + subjects.count }

    // MARK: Applying changes

    /// Applies a change of a row. An insert and an update replace everything stored of the row.
    ///
    /// A row of a snapshot counts as an insert.
    public mutating func apply(_ change: RowWrite, of table: TableDeclaration) -> MembershipUpdate {
        var update = MembershipUpdate()
        guard !table.memberships.isEmpty else { return update }
        let sides: (old: TableDeclaration.Side?, new: TableDeclaration.Side?)
        do throws(Failure) {
            sides = try table.sides(of: change, self)
        } catch {
            update.refusal = error
            return update
        }
        let newId = sides.new.flatMap { table.recordId(of: $0.row) }
        for (index, rule) in memberships.enumerated() where rule.table == table.name && rule.schema == table.schema {
            if let old = sides.old, let oldId = table.recordId(of: old.row) ?? newId,
                !oldId.hasBytes(of: newId ?? "") || old.tenant != sides.new?.tenant
            {
                revoke(index, row: oldId, tenant: old.tenant, &update)
            }
            if let new = sides.new, let newId {
                let declaration = rule.declaration
                let fact = MembershipFact(
                    tenant: new.tenant, membership: declaration.name, row: newId,
                    subject: new.row[declaration.subjectColumn]?.keyText,
                    object: new.row[declaration.grantColumn]?.keyText, counts: declaration.when.holds(for: new.row))
                set(index, newId, to: fact, &update)
                for column in [declaration.subjectColumn, declaration.grantColumn] {
                    guard case .array? = new.row[column] else { continue }
                    update.refusal = .invalid(
                        "/record/\(ChangeMembers.step(column))",
                        "is a list, but the membership \(declaration.name) takes a single id: use one row per id")
                }
            }
        }
        return update
    }

    /// Applies the removal of all rows of a table, for all tenants, except the ones that are kept.
    public mutating func truncate(
        _ table: TableDeclaration, except isKept: (_ tenant: ID<Tenant>, _ row: String) -> Bool = { _, _ in false }
    ) -> MembershipUpdate {
        var update = MembershipUpdate()
        for (index, rule) in memberships.enumerated() where rule.table == table.name && rule.schema == table.schema {
            let gone = facts.values.joined().filter {
                ($0.counts || $0.isOutdated) && $0.membership == rule.declaration.name
                    && !isKept($0.tenant, $0.row ?? "")
            }
            for fact in gone { revoke(index, row: fact.row ?? "", tenant: fact.tenant, &update) }
        }
        return update
    }

    /// Returns the deletions that a truncation of a table implies: one for each row that grants a key, with the row's
    /// stored columns.
    ///
    /// - Parameter limit: The maximum number of rows. Returns nil for more.
    public func deletions(of table: TableDeclaration, atMost limit: Int) -> [RowWrite]? {
        let names = Set(
            memberships.filter { $0.table == table.name && $0.schema == table.schema }.map(\.declaration.name))
        var seen: [ID<Tenant>: Set<String>] = [:]
        var deletions: [RowWrite] = []
        for fact in facts.values.joined() where fact.counts && names.contains(fact.membership) {
            guard let id = fact.row, seen[fact.tenant, default: []].insert(id).inserted else { continue }
            guard deletions.count < limit else { return nil }
            let stored = storedColumns(table: table, row: id, tenant: fact.tenant) ?? [:]
            deletions.append(RowWrite(.delete, old: table.row(id, of: fact.tenant, stored), new: nil))
        }
        return deletions
    }

    /// Loads a stored fact. One of a membership that is no longer declared is ignored.
    ///
    /// - Parameter isCurrent: Whether the present rule of the membership gave the fact. Otherwise it does not count, and
    ///   its subject counts as known: neither an old row nor a claim gives a key.
    /// - Returns: The keys whose holders' scopes have changed.
    public mutating func restore(_ fact: MembershipFact, isCurrent: Bool) -> Set<MembershipUpdate.Holders> {
        guard let index = memberships.firstIndex(where: { $0.declaration.name == fact.membership }) else { return [] }
        var update = MembershipUpdate()
        if let row = fact.row {
            var fact = fact
            if !isCurrent { (fact.counts, fact.isOutdated) = (false, true) }
            set(index, row, to: fact, &update)
        } else if let subject = fact.subject {
            let name = SubjectName(membership: index, tenant: fact.tenant, value: subject)
            if subjects[name] == nil, entryCount < entriesMax { subjects[name] = [:] }
        }
        return update.holders
    }

    /// Makes all facts of some memberships outdated, because another replica's file no longer declares them.
    ///
    /// - Returns: The keys whose holders' scopes have changed.
    public mutating func retire(_ names: Set<String>) -> Set<MembershipUpdate.Holders> {
        var holders: Set<MembershipUpdate.Holders> = []
        for fact in facts.values.joined().filter({ names.contains($0.membership) }) {
            holders.formUnion(restore(fact, isCurrent: false))
        }
        return holders
    }

    /// The memberships with outdated facts, with their tables and the numbers of rows.
    public var outdated: [(membership: String, schema: String, table: String, rows: Int)] {
        zip(memberships, outdatedCounts).filter { $1 > 0 }.map { rule, count in
            (rule.declaration.name, rule.schema, rule.table, count)
        }
    }

    private mutating func revoke(_ index: Int, row: String, tenant: ID<Tenant>, _ update: inout MembershipUpdate) {
        let known = facts[FactName(membership: index, row: row)]?.first { $0.tenant == tenant }
        guard var fact = known, fact.counts || fact.isOutdated else { return }
        (fact.counts, fact.isOutdated) = (false, false)
        set(index, row, to: fact, &update)
    }

    private mutating func set(
        _ index: Int, _ row: String, to fact: MembershipFact, _ update: inout MembershipUpdate
    ) {
        let name = FactName(membership: index, row: row)
        let rule = memberships[index]
        let place = facts[name]?.firstIndex { $0.tenant == fact.tenant }
        let before = place.flatMap { facts[name]?[$0] }
        guard before != fact else { return }
        if let before { take(before, from: index, &update) }
        var after = fact
        if before == nil, entryCount >= entriesMax {
            update.refusal = Self.tooManyEntries(entriesMax)
            return
        }
        if fact.counts, let refusal = refusal(of: fact, index) {
            update.refusal = refusal
            after.counts = false
        }
        facts.update(name, default: []) { rows in
            if let place { rows[place] = after } else { rows.append(after) }
        }
        if before == nil { factCount += 1 }
        outdatedCounts[index] += (after.isOutdated ? 1 : 0) - (before?.isOutdated == true ? 1 : 0)
        if let subject = after.subject {
            let subjectName = SubjectName(membership: index, tenant: after.tenant, value: subject)
            let isNew = subjects[subjectName] == nil
            if isNew { subjects[subjectName] = [:] }
            if after.counts, let object = after.object {
                subjects.update(subjectName, default: [:]) { $0[ID(object), default: 0] += 1 }
            }
            if isNew || after.counts { update.note(after.tenant, rule.declaration.subjectKey(subject)) }
        }
        // From now on, a claim alone no longer gives the key to any caller.
        if before == nil, rule.rowDecides, let object = after.object {
            update.note(after.tenant, rule.declaration.grantKey(object))
        }
        if let before, before.subject != nil, !before.subject.hasBytes(of: after.subject) {
            update.facts.append(
                MembershipFact(
                    tenant: before.tenant, membership: before.membership, row: nil, subject: before.subject,
                    object: nil, counts: false))
        }
        update.facts.append(after)
    }

    private mutating func take(_ fact: MembershipFact, from index: Int, _ update: inout MembershipUpdate) {
        guard fact.counts, let subject = fact.subject, let object = fact.object else { return }
        let name = SubjectName(membership: index, tenant: fact.tenant, value: subject)
        guard let count = subjects[name]?[ID(object)] else { return }
        subjects.update(name, default: [:]) { $0[ID(object)] = count > 1 ? count - 1 : nil }
        update.note(fact.tenant, memberships[index].declaration.subjectKey(subject))
    }

    private func refusal(of fact: MembershipFact, _ index: Int) -> Failure? {
        guard let subject = fact.subject, let object = fact.object else { return nil }
        guard let objects = subjects[SubjectName(membership: index, tenant: fact.tenant, value: subject)] else {
            return entryCount >= entriesMax ? Self.tooManyEntries(entriesMax) : nil
        }
        guard objects[ID(object)] == nil, objects.count >= TableLimits.grantsPerSubjectMax else { return nil }
        let declaration = memberships[index].declaration
        return Failure.invalid(
            "/record/\(declaration.grantColumn)",
            "exceeds the limit: \(declaration.subjectKey(subject)) already has \(objects.count) '\(declaration.name)' memberships"
        )
    }

    private static func tooManyEntries(_ entriesMax: Int) -> Failure {
        Failure(
            .unavailable, "memberships.full",
            "The service stores at most \(entriesMax) memberships. Declare memberships on tables with fewer rows.")
    }

    // MARK: Reading

    /// Returns the objects of a subject; nil if the subject is unknown.
    func granted(to subject: String, by membership: String, tenant: ID<Tenant>) -> [String]? {
        guard let index = memberships.firstIndex(where: { $0.declaration.name == membership }) else { return nil }
        return subjects[SubjectName(membership: index, tenant: tenant, value: subject)].map {
            $0.keys.sorted().map(\.text)
        }
    }

    /// Returns the last columns of a row that its memberships store; nil for an unknown row.
    func storedColumns(table: TableDeclaration, row: String, tenant: ID<Tenant>) -> RowWrite.Row? {
        var columns: RowWrite.Row?
        for (index, rule) in memberships.enumerated() where rule.table == table.name && rule.schema == table.schema {
            let known = facts[FactName(membership: index, row: row)]?.first { $0.tenant == tenant }
            guard let known, !known.isOutdated else { continue }
            columns = columns ?? [:]
            columns?[rule.declaration.subjectColumn] = known.subject.map(JSONValue.string) ?? .null
            columns?[rule.declaration.grantColumn] = known.object.map(JSONValue.string) ?? .null
        }
        return columns
    }

    func tenant(ofRow row: String, of table: TableDeclaration) -> ID<Tenant>? {
        tenant(ofRow: row) { $0.table == table.name && $0.schema == table.schema }
    }

    func tenant(ofRow row: String, ofTableNamed table: String) -> ID<Tenant>? {
        tenant(ofRow: row) { $0.table == table }
    }

    /// Returns the single tenant that has the row, or nil. If two have it, a guess would show one tenant's rows to
    /// another.
    private func tenant(ofRow row: String, where isMeant: (Rule) -> Bool) -> ID<Tenant>? {
        guard let index = memberships.firstIndex(where: isMeant) else { return nil }
        let known = facts[FactName(membership: index, row: row)] ?? []
        return known.count == 1 && !known[0].isOutdated ? known[0].tenant : nil
    }
}

extension MembershipUpdate {
    fileprivate mutating func note(_ tenant: ID<Tenant>, _ key: String) {
        holders.insert(Holders(tenant: tenant, key: key))
    }
}

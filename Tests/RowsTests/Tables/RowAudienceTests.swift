import TestSupport
import Testing
import Values

@testable import Rows

/// The audience of a row: lists, columns reached through other tables, denied states, and rows without an audience.
@Suite(.timed) struct RowAudienceTests {
    /// Organisations own projects, and projects have tasks. The members of the project's organisation may see a task.
    private static let file = """
        version: 1
        tables:
          - table: tasks
            primaryKey: [id]
            tenant: {constant: default}
            related:
              org_id: {through: project_org, of: project_id}
              boss_id: {through: org_boss, of: org_id}
            audience:
              select:
                - org:{org_id}:member
                - boss:{boss_id}
                - user:{watcher_ids}
                - template: everyone
                  when: {state: {not: [draft, hidden]}, kind: public}
            invalidates:
              - keys: [[tasks, "{org_id}"]]
                audience: ["org:{org_id}:member"]
          - table: projects
            primaryKey: [id]
            tenant: {constant: default}
            audience: {select: ["org:{org_id}:member"]}
            memberships:
              - {name: project_org, subject: "project:{id}", grants: "in-org:{org_id}"}
          - table: orgs
            primaryKey: [id]
            tenant: {constant: default}
            audience: {select: ["org:{id}:member"]}
            memberships:
              - {name: org_boss, subject: "org:{id}", grants: "by-boss:{boss_id}"}
        """

    private let catalog: TableCatalog
    private var memberships: Memberships

    init() throws {
        catalog = try TableCatalog(reading: ShippedTables.value(yaml: Self.file))
        memberships = Memberships(catalog)
        for (id, org) in [("p1", "o1"), ("p2", "o2")] {
            _ = memberships.apply(
                RowWrite(.insert, old: nil, new: ["id": .string(id), "org_id": .string(org)]), of: catalog.tables[1])
            _ = memberships.apply(
                RowWrite(.insert, old: nil, new: ["id": .string(org), "boss_id": .string("boss-\(org)")]),
                of: catalog.tables[2])
        }
    }

    private func routing(
        _ new: RowWrite.Row?, _ operation: RowOperation = .insert, old: RowWrite.Row? = nil
    ) throws -> ChangeRouting {
        try catalog.tables[0].routing(
            of: RowWrite(operation, old: old, new: new), at: nil, memberships: memberships)
    }

    private func readers(_ row: RowWrite.Row) throws -> [String] {
        try routing(row).changes.first?.change.newReaders ?? []
    }

    @Test func list_makesAKeyOfEachElement() throws {
        let row: RowWrite.Row = ["id": "t", "watcher_ids": .array(["ann", 7, "ben", .null, "ann", .array([])])]
        #expect(try readers(row) == ["user:7", "user:ann", "user:ben"])
        #expect(try readers(["id": "t", "watcher_ids": "ann"]) == ["user:ann"])
        #expect(try readers(["id": "t", "watcher_ids": .array([])]) == [])
    }

    @Test func listOfMoreThanARowMayReach_isRefused() throws {
        func row(_ count: Int) -> RowWrite.Row {
            ["id": "t", "watcher_ids": .array((0..<count).map { .string("u\($0)") })]
        }
        #expect(try readers(row(TableLimits.keysPerRowMax)).count == TableLimits.keysPerRowMax)
        let refused = try routing(row(TableLimits.keysPerRowMax + 1))
        #expect(refused.changes.isEmpty)
        #expect(refused.unreached?.fields.first?.pointer == "/record/watcher_ids")
    }

    @Test func relatedColumn_mayReferToAnother() throws {
        let row: RowWrite.Row = ["id": "t", "project_id": "p1", "watcher_ids": .null]
        #expect(try readers(row) == ["org:o1:member", "boss:boss-o1"])
        #expect(try routing(row).changes.first?.change.invalidations.map(\.key) == [["tasks", "o1"]])
        // The new project of a moved row decides, although the row does not name the organisation.
        let moved = try routing(row.merging(["project_id": "p2"]) { $1 }, .update, old: row)
        #expect(moved.changes.first?.change.oldReaders == ["org:o1:member", "boss:boss-o1"])
        #expect(moved.changes.first?.change.newReaders == ["org:o2:member", "boss:boss-o2"])
    }

    /// As in SQL, a null or missing value does not satisfy `not`.
    @Test func not_holdsForOtherValues_andForNothingElse() throws {
        func isForAll(_ state: JSONValue?) throws -> Bool {
            var row: RowWrite.Row = ["id": "t", "kind": "public"]
            row["state"] = state
            return try readers(row).contains("everyone")
        }
        #expect(try isForAll("open"))
        #expect(try isForAll(""))
        for state in ["draft", "hidden", .null, nil] as [JSONValue?] { #expect(try !isForAll(state)) }
        let isSet = RowCondition(denied: ["state": [.null]])
        #expect(isSet.holds(for: ["state": "draft"]))
        #expect(!isSet.holds(for: ["state": .null]))
        #expect(!isSet.holds(for: [:]))
    }

    /// A row is reported if the sender omitted the columns of its audience. A complete row without an audience is
    /// valid.
    @Test func rowWithoutItsAudiencesColumns_isReportedAsUnreached() throws {
        let bare = try routing(["id": "t"])
        #expect(bare.changes.isEmpty)
        #expect(bare.unreached?.fields.first?.pointer == "/record")
        #expect(bare.unreached?.fields.first?.detail.contains("lacks project_id, watcher_ids, kind, state") == true)
        let whole: RowWrite.Row = [
            "id": "t", "project_id": .null, "watcher_ids": .array([]), "kind": "public", "state": "draft",
        ]
        #expect(try routing(whole).unreached == nil)
        #expect(try routing(["id": "t", "watcher_ids": .array(["ann"])]).unreached == nil)
        // An update without relevant changes reaches no user either, and is not an error.
        #expect(try routing(whole, .update, old: whole).unreached == nil)
    }

    @Test func deletedRowWithItsKeyAlone_isReportedAsUnreached() throws {
        for old in [["id": "t"], ["id": "t", "project_id": .null, "title": .null]] as [RowWrite.Row] {
            let gone = try routing(nil, .delete, old: old)
            #expect(gone.unreached?.fields.first?.pointer == "/oldRecord", "\(old)")
            #expect(gone.unreached?.fields.first?.detail.contains("REPLICA IDENTITY FULL") == true, "\(old)")
        }
        #expect(try routing(nil, .delete, old: ["id": "t", "project_id": "p1"]).unreached == nil)
    }

    /// One row grants one membership. A list would grant several, so it is refused.
    @Test mutating func listInAMembershipsColumn_isRefused() throws {
        let row: RowWrite.Row = ["id": "p3", "org_id": .array(["o1", "o2"])]
        let refusal = memberships.apply(RowWrite(.insert, old: nil, new: row), of: catalog.tables[1]).refusal
        #expect(refusal?.fields.first?.pointer == "/record/org_id")
    }
}

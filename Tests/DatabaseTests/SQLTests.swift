import TestSupport
import Testing
import Values

@testable import Database

@Suite(.timed) struct SQLTests {
    let notes = Table(
        "notes", read: ["user:{user_id}", "shop:{shop_id}:staff", "tenant:admin"], write: ["user:{user_id}"])
    let scope = Scope(tenant: "t1", keys: ["user:u1", "everyone"])

    @Test func interpolatedStrings_areBinds_neverText() {
        let hostile = "x'; DROP TABLE notes; --"
        let sql: SQL = "SELECT \(hostile), \("literal"), \(7), \(true), \(nil as String?), \([1, 2] as [UInt8])"
        #expect(sql.text == "SELECT ?, ?, ?, ?, ?, ?")
        #expect(sql.binds == [.text(hostile), .text("literal"), .integer(7), .integer(1), .null, .blob([1, 2])])
    }

    @Test func fragments_areSplicedWithTheirBinds_inOrder() {
        let condition: SQL = "b = \(2)"
        let sql: SQL = "SELECT 1 WHERE a = \(1) AND \(condition) AND c IN \(values: [3, 4])"
        #expect(sql.text == "SELECT 1 WHERE a = ? AND b = ? AND c IN (?, ?)")
        #expect(sql.binds == [.integer(1), .integer(2), .integer(3), .integer(4)])
        let joined = SQL.joined(["a = \(1)", "b = \(2)"], separator: " OR ")
        #expect(joined.text == "a = ? OR b = ?")
    }

    @Test func visibleTable_becomesASubquery_namedLikeTheTableOrByItsAlias() {
        let inner = "(SELECT * FROM notes WHERE notes.tenant = ? AND notes.user_id = ?)"
        let plain: SQL = "SELECT * FROM \(notes, visibleTo: scope) WHERE id = \("n1")"
        #expect(plain.text == "SELECT * FROM \(inner) AS notes WHERE id = ?")
        #expect(plain.binds == [.text("t1"), .text("u1"), .text("n1")])
        let aliased: SQL = "SELECT * FROM \(notes, visibleTo: scope) AS n WHERE n.id = \("n1")"
        #expect(aliased.text == "SELECT * FROM \(inner) AS n WHERE n.id = ?")
        let last: SQL = "SELECT * FROM \(notes, visibleTo: scope)"
        #expect(last.text == "SELECT * FROM \(inner) AS notes")
        let followed: SQL = "SELECT * FROM \(notes, visibleTo: scope)\(" WHERE 1" as SQL)"
        #expect(followed.text == "SELECT * FROM \(inner) AS notes WHERE 1")
    }

    @Test func binding_keepsTheTextOfAStatement() {
        let made: SQL = "SELECT \("1" as SQL) WHERE a = ? AND b = ?"
        let bound = made.binding("x", nil as Int?)
        #expect(bound.text == made.text)
        #expect(bound.binds == [.text("x"), .null])
    }

    @Test(arguments: [0, 1, 2, 3, 63, 64, 65, 200])
    func insertion_bindsEachRowOnce_byStatementsOfPowersOfTwo(rows: Int) {
        let insertion = Insertion("INSERT INTO notes (id, text)", columns: 2, "RETURNING id")
        let values = (0..<rows).flatMap { [SQLValue.integer(Int64($0)), .text("note \($0)")] }
        let statements = insertion.statements(of: values)
        #expect(statements.flatMap(\.binds) == values)
        #expect(statements.count == rows / 64 + (rows % 64).nonzeroBitCount)
        for statement in statements {
            #expect(statement.text.utf8.count { $0 == UInt8(ascii: "?") } == statement.binds.count)
            #expect(statement.text.hasPrefix("INSERT INTO notes (id, text) VALUES (?, ?)"))
            #expect(statement.text.hasSuffix(" RETURNING id"))
        }
    }

    @Test func update_touchesOnlyWritableRows_evenWhereTheConditionHasAnOr() {
        let sql: SQL = "UPDATE \(notes, writableBy: scope) SET n = \(1) WHERE a = \(2) OR b = \(3) RETURNING id"
        let woven = sql.woven()
        let policy = "notes.tenant = ? AND notes.user_id = ?"
        #expect(
            woven.text
                == "UPDATE notes SET n = ? WHERE (\(policy)) AND ( a = ? OR b = ? ) RETURNING id, (\(policy))")
        #expect(
            woven.binds == [.integer(1), .text("t1"), .text("u1"), .integer(2), .integer(3), .text("t1"), .text("u1")])
        #expect(woven.hasCheck)
    }

    @Test func deleteWithoutACondition_getsThePolicyAsItsCondition() {
        let sql: SQL = "DELETE FROM \(notes, writableBy: scope)"
        #expect(sql.woven().text == "DELETE FROM notes WHERE notes.tenant = ? AND notes.user_id = ? ")
        #expect(!sql.woven().hasCheck)
    }

    @Test func clauseScanner_skipsQuotesAndParentheses() {
        let sql: SQL = """
            UPDATE \(notes, writableBy: scope) SET a = 'x WHERE ? y', b = (SELECT 1 WHERE 1 = \(1)) WHERE id = \(2)
            """
        let woven = sql.woven()
        #expect(woven.text.contains("'x WHERE ? y', b = (SELECT 1 WHERE 1 = ?) WHERE (notes.tenant"))
        #expect(woven.binds[0] == .integer(1))
        #expect(woven.binds[1] == .text("t1"))
        #expect(woven.binds[3] == .integer(2))
    }

    @Test func upsert_filtersTheExistingRow_andChecksTheNewOne() {
        let sql: SQL = """
            INSERT INTO \(notes, writableBy: scope) (id, n) VALUES (\("a"), \(1)) \
            ON CONFLICT (id) WHERE n > 0 DO UPDATE SET n = \(2) WHERE notes.n < \(9)
            """
        let woven = sql.woven()
        let policy = "notes.tenant = ? AND notes.user_id = ?"
        #expect(
            woven.text == """
                INSERT INTO notes (id, n) VALUES (?, ?) ON CONFLICT (id) WHERE n > 0 DO UPDATE SET n = ? \
                WHERE (\(policy)) AND ( notes.n < ?)  RETURNING (\(policy))
                """)
        #expect(woven.binds.count == 8)
    }

    @Test func writeTargetWithAlias_isQualifiedByTheAlias() {
        let sql: SQL = "UPDATE \(notes, writableBy: scope) AS x SET n = 1 WHERE x.id = 'a'"
        #expect(sql.woven().text.contains("WHERE (x.tenant = ? AND x.user_id = ?) AND"))
    }

    @Test func writableTableInAQuery_readsByTheWritePolicy() {
        let sql: SQL = "SELECT 1 FROM \(notes, writableBy: Scope(tenant: "t1", keys: ["tenant:admin"]))"
        #expect(sql.text == "SELECT 1 FROM (SELECT * FROM notes WHERE FALSE) AS notes")
    }

    @Test func unscopedTable_isItsBareName() {
        let sql: SQL = "SELECT * FROM \(notes, unscoped: .bookkeeping("a recount reads all rows"))"
        #expect(sql.text == "SELECT * FROM notes")
    }

    @Test func emptyList_matchesNothing_andItsNegationEverything() throws {
        let store = try DatabaseStore.open(.memory)
        defer { store.close() }
        let none: [Int] = []
        #expect(try store.read { try $0.integer("SELECT 1 IN \(values: none)") } == 0)
        #expect(try store.read { try $0.integer("SELECT 1 NOT IN \(values: none)") } == 1)
    }
}

import TestSupport
import Testing

@testable import Rows
@testable import Values

@Suite(.timed) struct TableSubscriptionTests {
    private static let typed: ColumnTypes = ["id": .uuid, "points": .integer, "at": .timestamptz, "data": .json]

    private func list(_ json: String) throws -> [TableSubscription] {
        guard case .array(let values) = try JSONValue(parsing: Array(json.utf8)) else { return [] }
        return try TableSubscription.list(values, at: "/tables") { _, table in table == "typed" ? Self.typed : nil }
    }

    private func fields(_ json: String) -> [String] {
        do {
            _ = try list(json)
            return []
        } catch let failure as Failure {
            return failure.fields.map { "\($0.pointer): \($0.detail)" }
        } catch {
            return ["\(error)"]
        }
    }

    @Test func subscriptions_areRead_withTheirDefaults() throws {
        let read = try list(
            #"[{"table": "posts"}, {"id": "mine", "schema": "app", "table": "t", "event": "update", "filter": "id=eq.1", "#
                + #""select": ["b", "a", "b"]}, {"table": "x", "event": "*", "filter": " "}]"#)
        #expect(read.map(\.id) == ["0", "mine", "2"])
        #expect(read[0] == TableSubscription(id: "0", table: "posts"))
        #expect(read[1].schema == "app")
        #expect(read[1].events == .update)
        #expect(read[1].selection?.columns == ["a", "b"])
        #expect(read[1].filter.canonical == "id=eq.1")
        #expect(read[2].events == .all)
        #expect(read[2].filter == .all)
    }

    @Test func badSubscription_isRefused_withThePlace() {
        let mistakes = fields(
            #"[{"table": "posts", "filter": "id=foo.5"}, {"event": "TRUNCATE"}, 5, {"table": "*"}, "#
                + #"{"table": "a", "select": []}, {"table": "a", "selct": ["b"]}, {"table": "a", "id": "x"}, "#
                + #"{"table": "a", "id": "x"}, {"table": "a", "select": "b"}]"#)
        #expect(
            mistakes.map { String($0.prefix { $0 != ":" }) } == [
                "/tables/0/filter", "/tables/1/table", "/tables/1/event", "/tables/2", "/tables/3/table",
                "/tables/4/select", "/tables/5/selct", "/tables/7/id", "/tables/8/select",
            ])
        #expect(mistakes[0].contains("unknown operator 'foo'"))
        #expect(mistakes[0].contains("at byte 3: 'foo.5'"))
    }

    /// A filter on a missing column never matches, and the client would not notice why.
    @Test func declaredTable_hasNoOtherColumns_andNoExpressions() throws {
        let mistakes = fields(
            #"[{"table": "typed", "filter": "points=gt.1,pints=gt.5"}, {"table": "typed", "filter": "data->>a=eq.1"}, "#
                + #"{"table": "typed", "filter": "points::text=eq.5"}, {"table": "typed", "filter": "points=eq.x"}, "#
                + #"{"table": "typed", "filter": "data=eq.{}"}, {"table": "typed", "filter": "points=like.5%"}, "#
                + #"{"table": "typed", "select": ["id", "pints"]}, {"table": "t", "filter": "data->a=eq.1"}]"#)
        #expect(
            mistakes.map { String($0.prefix { $0 != ":" }) } == [
                "/tables/0/filter", "/tables/1/filter", "/tables/2/filter", "/tables/3/filter", "/tables/4/filter",
                "/tables/5/filter", "/tables/6/select/1", "/tables/7/filter",
            ])
        #expect(mistakes[0].contains("at byte 12: 'pints"))
        #expect(mistakes[0].contains("the declared columns are at, data, id, points"))
        #expect(mistakes[1].contains("paths into JSON"))
        #expect(mistakes[2].contains("casts"))
        #expect(mistakes[3].contains("of type integer"))
        let read = try list(#"[{"table": "typed", "filter": "at=gte.2026-01-10 11:30:00+02,points=in.(05)"}]"#)
        #expect(read[0].filter.canonical == "at=gte.2026-01-10T09:30:00.000Z,points=in.(5)")
    }

    @Test func mistakes_areReportedUpToTwenty() {
        let many = (0..<50).map { _ in #"{"filter": "x"}"# }.joined(separator: ",")
        #expect(fields("[\(many)]").count == 20)
    }

    /// R-ENG-E-4, R-SCH-A-003: at most 100 subscriptions per stream.
    @Test func stream_hasAtMostAHundredSubscriptions_andTenThousandValues() throws {
        let one = #"{"table": "t", "filter": "id=eq.1"}"#
        #expect(try list("[\(Array(repeating: one, count: 100).joined(separator: ","))]").count == 100)
        #expect(fields("[\(Array(repeating: one, count: 101).joined(separator: ","))]").count == 1)
        let thousand = "id=in.(\((0..<1000).map(String.init).joined(separator: ",")))"
        let big = #"{"table": "t", "filter": "\#(thousand)"}"#
        #expect(try list("[\(Array(repeating: big, count: 10).joined(separator: ","))]").count == 10)
        #expect(fields("[\(Array(repeating: big, count: 11).joined(separator: ","))]").first?.contains("10000") == true)
    }

    @Test func stream_hasAtMostTenSearches() throws {
        let one = #"{"table": "t", "filter": "id=eq.1,name=ilike.%x%"}"#
        #expect(try list("[\(Array(repeating: one, count: 10).joined(separator: ","))]").count == 10)
        #expect(fields("[\(Array(repeating: one, count: 11).joined(separator: ","))]").count == 1)
        let anchored = #"{"table": "t", "filter": "name=ilike.x%y"}"#
        #expect(try list("[\(Array(repeating: anchored, count: 11).joined(separator: ","))]").count == 11)
    }

    @Test func subscription_isWritten_asItIsRead() throws {
        let text =
            #"[{"table": "t", "event": "delete", "filter": " id = in.(b, a)", "select": ["y", "x"]}, {"table": "u"}]"#
        let read = try list(text)
        let written =
            "[" + read.map { String(decoding: JSONWriter.bytes($0), as: UTF8.self) }.joined(separator: ",") + "]"
        #expect(
            written == #"[{"id":"0","schema":"public","table":"t","event":"DELETE","filter":"id=in.(b,a)","#
                + #""select":["x","y"]},{"id":"1","schema":"public","table":"u","event":"*","filter":"","select":null}]"#
        )
        #expect(try list(written) == read)
    }

    // MARK: Enter, update, leave

    private let old: Filter.Row = ["id": .integer(1), "class_id": .string("c1"), "secret": .string("old")]
    private let new: Filter.Row = ["id": .integer(1), "class_id": .string("c2"), "secret": .string("new")]

    /// Every combination of old and new row, filter and visibility: 16 for an update alone.
    @Test func transition_isDecidedByFilterAndVisibility_ofBothRows() throws {
        for matchesOld in [false, true] {
            for matchesNew in [false, true] {
                let classes = (matchesOld ? ["c1"] : []) + (matchesNew ? ["c2"] : []) + ["c9"]
                let filter = try Filter(parsing: "class_id=in.(\(classes.joined(separator: ",")))")
                let subscription = TableSubscription(id: "s", table: "students", filter: filter)
                for seesOld in [false, true] {
                    for seesNew in [false, true] {
                        func decide(
                            _ event: TableSubscription.Events, _ old: Filter.Row?, _ new: Filter.Row?
                        ) -> RowTransition? {
                            subscription.transition(event, old: old, new: new, seesOld: seesOld, seesNew: seesNew)
                        }
                        let was = matchesOld && seesOld
                        let isNow = matchesNew && seesNew
                        let name: Comment = "old \(matchesOld) \(seesOld), new \(matchesNew) \(seesNew)"
                        #expect(decide(.insert, nil, new) == (isNow ? .enter : nil), name)
                        #expect(decide(.delete, old, nil) == (was ? .leave : nil), name)
                        let expected: RowTransition? =
                            was && isNow ? .update : was ? .leave : isNow ? .enter : nil
                        #expect(decide(.update, old, new) == expected, name)
                    }
                }
            }
        }
    }

    @Test func unsubscribedEvent_isNotDelivered() {
        let subscription = TableSubscription(id: "s", table: "t", events: .insert)
        #expect(subscription.transition(.update, old: old, new: new, seesOld: true, seesNew: true) == nil)
        #expect(subscription.transition(.insert, old: nil, new: new, seesOld: false, seesNew: true) == .enter)
    }

    /// The feed sends only the key of the old row, while the filter needs another column.
    @Test func oldRowWithoutTheFiltersColumn_matchedNoFilter() throws {
        let subscription = TableSubscription(id: "s", table: "t", filter: try Filter(parsing: "class_id=eq.c2"))
        let key: Filter.Row = ["id": .integer(1)]
        #expect(subscription.transition(.update, old: key, new: new, seesOld: true, seesNew: true) == .enter)
        #expect(subscription.transition(.delete, old: key, new: nil, seesOld: true, seesNew: false) == nil)
    }

    /// An event never carries a column outside `select`, nor any part of a row that the receiver may not see.
    @Test func sentRows_haveOnlyTheSelection_andALeaveOnlyTheKey() {
        let selection = ColumnSelection(["class_id"])
        func rows(_ transition: RowTransition, _ selection: ColumnSelection?) -> [Filter.Row?] {
            let rows = transition.rows(old: old, new: new, selection: selection, primaryKey: ["id"])
            return [rows.record, rows.oldRecord]
        }
        let oldPart: Filter.Row = ["id": .integer(1), "class_id": .string("c1")]
        let newPart: Filter.Row = ["id": .integer(1), "class_id": .string("c2")]
        #expect(rows(.enter, selection) == [newPart, nil])
        #expect(rows(.update, selection) == [newPart, oldPart])
        #expect(rows(.leave, selection) == [nil, ["id": .integer(1)]])
        #expect(rows(.enter, nil) == [new, nil])
        #expect(rows(.update, nil) == [new, old])
        #expect(rows(.leave, nil) == [nil, ["id": .integer(1)]])
    }
}

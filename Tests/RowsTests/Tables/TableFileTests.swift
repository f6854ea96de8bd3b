import Foundation
import TestSupport
import Testing
import Values

@testable import Rows

/// The table file: accepted declarations, and refused ones with their positions (R-SCH-A-009).
@Suite(.timed) struct TableFileTests {
    /// A mistake, and whether the JSON Schema finds it. The schema cannot find wrong references to other places.
    struct Bad: CustomTestStringConvertible {
        let name: String
        let pointer: String
        let change: String
        let isBeyondSchema: Bool

        init(_ name: String, _ pointer: String, _ change: String, isBeyondSchema: Bool = false) {
            (self.name, self.pointer, self.change) = (name, pointer, change)
            self.isBeyondSchema = isBeyondSchema
        }

        var testDescription: String { name }
    }

    static let good = """
        version: 1
        contacts:
          conversations: {any: ["team:{id}"], not: ["room:{user}"]}
          requests: {any: [everyone]}
          follows: []
        tables:
          - table: notes
            primaryKey: [id]
            tenant: {column: org}
            columns: [title, place]
            audience: {select: ["user:{owner}", "team:{team_id}"]}
            related: {team_id: {through: team_member, of: owner}, room_id: {through: room_member, of: owner}}
            invalidates:
              - after: [update]
                columns: [title]
                keys: [[notes, "{owner}"]]
                audience: ["user:{owner}"]
          - table: members
            primaryKey: [id]
            tenant: {column: org}
            audience: {select: ["user:{person}"]}
            memberships:
              - {name: team_member, subject: "user:{person}", grants: "team:{team}", when: {active: true}}
              - {name: room_member, subject: "user:{person}", grants: "room:{room}"}
        """

    /// Each entry replaces one text of `good`: `from → to`.
    static let bad: [Bad] = [
        Bad("unknown member", "/tables/0/colour", "table: notes → table: notes\n    colour: red"),
        Bad("unknown member of a group", "/tables/0/invalidates/0/when", "after: [update] → when: {}"),
        Bad("no version", "/version", "version: 1 → schema: public"),
        Bad("other version", "/version", "version: 1 → version: 2"),
        Bad("no table's name", "/tables/0/table", "table: notes → schema: public"),
        Bad("name that is none", "/tables/0/table", "table: notes → table: \"no{tes\""),
        Bad("no primary key", "/tables/0/primaryKey", "primaryKey: [id] → schema: public"),
        Bad("primary key twice", "/tables/0/primaryKey/1", "primaryKey: [id] → primaryKey: [id, id]"),
        Bad("empty tenant", "/tables/0/tenant/column", "tenant: {column: org} → tenant: {}"),
        Bad(
            "tenant of two kinds", "/tables/0/tenant/column",
            "tenant: {column: org} → tenant: {constant: a, column: org}"),
        Bad(
            "tenant through no table", "/tables/0/tenant/through",
            "tenant: {column: org} → tenant: {through: nothing, of: owner}", isBeyondSchema: true),
        Bad("no reader", "/tables/0/audience/select", "select: [\"user:{owner}\", → insert: [\"user:{owner}\","),
        Bad("template with a brace", "/tables/0/audience/select/0", "user:{owner}\", → user:{owner\","),
        Bad("template that is all column", "/tables/0/audience/select/0", "user:{owner}\", → {owner}\","),
        Bad("template of no kind", "/tables/0/audience/select/0", "\"user:{owner}\", → 7,"),
        Bad(
            "ambiguous template", "/tables/0/audience/select/1", "\"team:{team_id}\" → \"tenant:{owner}\"",
            isBeyondSchema: true),
        Bad(
            "operation with more readers than may read", "/tables/0/audience/delete/0",
            "audience: {select: → audience: {delete: [everyone], select:", isBeyondSchema: true),
        Bad(
            "two related columns in a template", "/tables/0/audience/select/1",
            "\"team:{team_id}\" → \"team:{team_id}:{room_id}\"", isBeyondSchema: true),
        Bad(
            "related column of itself", "/tables/0/related/room_id/of",
            "{through: room_member, of: owner} → {through: room_member, of: room_id}", isBeyondSchema: true),
        Bad("type that is none", "/tables/0/types/id", "table: notes → table: notes\n    types: {id: varchar2}"),
        Bad(
            "types without a column of the audience", "/tables/0/audience/select/0",
            "table: notes → table: notes\n    types: {id: uuid, org: text, title: text, place: text}",
            isBeyondSchema: true),
        Bad(
            "condition with another word than not", "/tables/1/memberships/0/when/active",
            "{active: true} → {active: {unless: true}}"),
        Bad(
            "related through nothing", "/tables/0/related/team_id/through",
            "{through: team_member, → {through: nothing,", isBeyondSchema: true),
        Bad("unknown operation", "/tables/0/invalidates/0/after/0", "after: [update] → after: [upsert]"),
        Bad(
            "columns without update", "/tables/0/invalidates/0/columns", "after: [update] → after: [insert]",
            isBeyondSchema: true),
        Bad(
            "column that is not selected", "/tables/0/invalidates/0/columns/0",
            "columns: [title]\n → columns: [body]\n",
            isBeyondSchema: true),
        Bad("empty query key", "/tables/0/invalidates/0/keys/0", "[notes, \"{owner}\"] → []"),
        Bad("half a column", "/tables/0/invalidates/0/keys/0/1", "[notes, \"{owner}\"] → [notes, \"x{owner}\"]"),
        Bad("key of a number", "/tables/0/invalidates/0/keys/0/1", "[notes, \"{owner}\"] → [notes, 7]"),
        Bad(
            "key that shows outsiders a column", "/tables/0/invalidates/0/keys/0/1",
            "audience: [\"user:{owner}\"] → audience: [everyone]", isBeyondSchema: true),
        Bad(
            "key and audience of two related columns", "/tables/0/invalidates/0/keys/0",
            "keys: [[notes, \"{owner}\"]]\n        audience: [\"user:{owner}\"] → "
                + "keys: [[notes, \"{room_id}\"]]\n        audience: [\"team:{team_id}\"]",
            isBeyondSchema: true),
        Bad("window of an hour", "/tables/0/windowMs", "table: notes → table: notes\n    windowMs: 3600000"),
        Bad(
            "membership of two columns", "/tables/1/memberships/0/grants", "team:{team} → team:{team}:{id}",
            isBeyondSchema: true),
        Bad("membership that makes admins", "/tables/1/memberships/0/grants", "team:{team} → tenant:{team}"),
        Bad("membership that makes another user", "/tables/1/memberships/0/grants", "team:{team} → user:{team}"),
        Bad(
            "membership twice", "/tables/1/memberships/1/name", "name: room_member → name: team_member",
            isBeyondSchema: true),
        Bad(
            "circle of memberships", "/tables",
            "{name: room_member, subject: \"user:{person}\", grants: \"room:{room}\"} → "
                + "{name: room_member, subject: \"team:{person}\", grants: \"room:{room}\"}\n"
                + "      - {name: c, subject: \"room:{room}\", grants: \"team:{id}\"}",
            isBeyondSchema: true),
        Bad("condition of a list of lists", "/tables/1/memberships/0/when/active", "{active: true} → {active: [[1]]}"),
        Bad("contacts of an unknown kind", "/contacts/likes", "follows: [] → likes: []"),
        Bad("contacts of no form", "/contacts/follows", "follows: [] → follows: everyone"),
        Bad("contacts without any", "/contacts/requests/any", "{any: [everyone]} → {not: []}"),
        Bad(
            "contacts of everyone and others", "/contacts/requests/any/0",
            "any: [everyone] → any: [everyone, \"room:{user}\"]"),
        Bad("contacts of not everyone", "/contacts/conversations/not/0", "not: [\"room:{user}\"] → not: [everyone]"),
        Bad(
            "contacts by a constant", "/contacts/conversations/any/0",
            "any: [\"team:{id}\"] → any: [\"tenant:admin\"]"),
        Bad(
            "contacts by an unknown key", "/contacts/conversations/any/0",
            "any: [\"team:{id}\"] → any: [\"taem:{id}\"]", isBeyondSchema: true),
        Bad("table twice", "/tables/1/table", "table: members → table: notes", isBeyondSchema: true),
    ]

    static func text(_ bad: Bad) -> String {
        let parts = bad.change.components(separatedBy: " → ")
        guard let range = good.range(of: parts[0]) else { return "" }
        return good.replacingCharacters(in: range, with: parts[1])
    }

    @Test func goodFile_isRead() throws {
        let catalog = try TableCatalog(reading: ShippedTables.value(yaml: Self.good), reserved: ShippedTables.reserved)
        let notes = try #require(catalog.find(schema: "public", table: "notes"))
        #expect(notes.window == .seconds(1))
        #expect(notes.audience.insert == notes.audience.select)
        #expect(catalog.find(schema: "private", table: "notes") == nil)
        #expect(notes.types == nil)
    }

    /// Names may contain anything that databases accept in quotes, and are compared by their bytes.
    @Test func quotedNames_areDeclared() throws {
        let catalog = try TableCatalog(
            reading: ShippedTables.value(
                yaml: """
                    version: 1
                    tables:
                      - {schema: My App, table: größe-2026, primaryKey: ["Row ID"], tenant: {constant: default},
                         types: {Row ID: "varchar", "owner-id": text, "2fa": bool, tags: "text[]"},
                         audience: {select: ["user:{owner-id}"]}, invalidates: [{keys: [["g", "{Row ID}"]]}]}
                    """))
        let table = try #require(catalog.find(schema: "My App", table: "größe-2026"))
        #expect(table.types == ["Row ID": .text, "owner-id": .text, "2fa": .boolean, "tags": .json])
        #expect(catalog.find(schema: "My App", table: "gro\u{308}ße-2026") == nil)
        let row: RowWrite.Row = ["Row ID": "r 1", "owner-id": "ann"]
        let invalidations = try table.invalidations(
            of: RowWrite(.insert, old: nil, new: row), memberships: Memberships(catalog))
        #expect(invalidations.map(\.key) == [["g", "r 1"]])
        #expect(invalidations.map(\.audience) == [["user:ann"]])
    }

    @Test(arguments: bad) func mistake_isRefused_withThePlace(_ bad: Bad) throws {
        let document = try ShippedTables.value(yaml: Self.text(bad))
        let failure = #expect(throws: Failure.self) {
            try TableCatalog(reading: document, reserved: ShippedTables.reserved)
        }
        #expect(failure?.code == "tables.invalid")
        #expect(failure?.fields.map(\.pointer).contains(bad.pointer) == true, "\(failure?.fields ?? [])")
    }

    private static func topics(_ list: String) throws -> TableCatalog {
        let text = "version: 1\ntopics: \(list)"
        return try TableCatalog(reading: ShippedTables.value(yaml: text), reserved: ShippedTables.reserved)
    }

    @Test func topics_areRead_alsoWithoutTables() throws {
        let catalog = try Self.topics("[{pattern: 'order:{id}', audience: ['user:{id}', 'a:{id}:b', everyone]}]")
        let topic = try #require(catalog.topics.first)
        #expect(topic.prefix == "order")
        #expect(topic.audience(of: "o:1") == ["user:o%3A1", "a:o%3A1:b", "everyone"])
    }

    @Test(arguments: [
        ("[{pattern: 'queue:{id}', audience: [everyone]}]", "/topics/0/pattern"),
        ("[{pattern: 'a:{id}', audience: [everyone]}, {pattern: 'a:{x}', audience: [everyone]}]", "/topics/1/pattern"),
        ("[{pattern: 'order', audience: [everyone]}]", "/topics/0/pattern"),
        ("[{pattern: 'a:b:{id}', audience: [everyone]}]", "/topics/0/pattern"),
        ("[{pattern: '{id}', audience: [everyone]}]", "/topics/0/pattern"),
        ("[{pattern: 'a,b:{id}', audience: [everyone]}]", "/topics/0/pattern"),
        ("[{pattern: 'a:{id}', audience: []}]", "/topics/0/audience"),
        ("[{pattern: 'a:{id}'}]", "/topics/0/audience"),
        ("[{pattern: 'a:{id}', audience: ['user:{user_id}']}]", "/topics/0/audience/0"),
        ("[{pattern: 'a:{id}', audience: [everyone, 'tenant:{id}']}]", "/topics/0/audience/1"),
        ("[{pattern: 'a:{id}', audience: [7]}]", "/topics/0/audience/0"),
        ("[{pattern: 'a:{id}', audience: [everyone], more: 1}]", "/topics/0/more"),
    ])
    func mistakesOfTopics_areRefused_withThePlace(_ list: String, _ place: String) throws {
        let failure = #expect(throws: Failure.self) { try Self.topics(list) }
        #expect(failure?.fields.map(\.pointer).contains(place) == true, "\(failure?.fields ?? [])")
    }

    @Test func allMistakes_areReportedAtOnce() throws {
        let document = JSONValue.object([
            "version": 1,
            "tables": .array([
                .object(["table": "a", "primaryKey": .array([7]), "tenant": "x", "audience": .object([:]), "more": 1])
            ]),
        ])
        let failure = #expect(throws: Failure.self) { try TableCatalog(reading: document) }
        #expect(
            Set(failure?.fields.map(\.pointer) ?? []) == [
                "/tables/0/primaryKey/0", "/tables/0/tenant", "/tables/0/audience/select", "/tables/0/more",
            ])
    }

    @Test func mistakes_areTruncatedAtTheLimit() throws {
        let tables = Array(repeating: JSONValue.object(["x": 1]), count: TableLimits.tablesMax)
        let document = JSONValue.object(["version": 1, "tables": .array(tables)])
        let failure = #expect(throws: Failure.self) { try TableCatalog(reading: document) }
        #expect(failure?.fields.count == TableLimits.mistakesMax)
        let tooMany = JSONValue.object(["version": 1, "tables": .array(tables + tables)])
        #expect(throws: Failure.self) { try TableCatalog(reading: tooMany) }
        for value in [JSONValue.null, .array([]), .object([:])] {
            #expect(throws: Failure.self) { try TableCatalog(reading: value) }
        }
    }

    /// Returns a file with one value, at a random position, replaced or removed.
    private static func mutated(_ value: JSONValue, _ random: inout SeededGenerator) -> JSONValue {
        let others: [JSONValue] = [
            .null, .bool(true), 7, .integer(-1), .number(1.5), "", "id", "{id}", "user:{id}", "everyone", "a:{b}:{c}",
            "{",
            .array([]), .array(["id"]), .array(["id", "id"]), .object([:]), .object(["template": "everyone"]),
            .string(String(repeating: "x", count: 300)), "tenant:{id}", "insert", .array([.array(["k", "{id}"])]),
        ]
        switch value {
        case .object(let members) where !members.isEmpty && Int.random(in: 0..<12, using: &random) > 0:
            var members = members
            guard let key = members.keys.sorted().randomElement(using: &random), let member = members[key] else {
                return value
            }
            switch Int.random(in: 0..<12, using: &random) {
            case 0: members[key] = nil
            case 1: members["more"] = others.randomElement(using: &random)
            default: members[key] = mutated(member, &random)
            }
            return .object(members)
        case .array(let items) where !items.isEmpty && Int.random(in: 0..<8, using: &random) > 0:
            var items = items
            let index = Int.random(in: 0..<items.count, using: &random)
            switch Int.random(in: 0..<12, using: &random) {
            case 0: items.remove(at: index)
            case 1: items.append(items[index])
            default: items[index] = mutated(items[index], &random)
            }
            return .array(items)
        default: return others.randomElement(using: &random) ?? .null
        }
    }

    /// Any file is either read or refused with positions, and the result is the same each time.
    @Test(arguments: [21, 22, 23] as [UInt64]) func anyFile_isReadOrRefusedWithPlaces(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let originals = try ["school", "posts"].map(ShippedTables.document) + [ShippedTables.value(yaml: Self.good)]
        for round in 0..<effort(quick: 100, full: 400, long: 4_000) {
            var document = originals[round % originals.count]
            for _ in 0...Int.random(in: 0..<3, using: &random) { document = Self.mutated(document, &random) }
            do throws(Failure) {
                _ = try TableCatalog(reading: document, reserved: ShippedTables.reserved)
            } catch {
                #expect((1...TableLimits.mistakesMax).contains(error.fields.count), "seed \(seed), \(round)")
                #expect(error.fields.allSatisfy { $0.pointer.isEmpty || $0.pointer.hasPrefix("/") }, "\(error.fields)")
                let again = #expect(throws: Failure.self) {
                    try TableCatalog(reading: document, reserved: ShippedTables.reserved)
                }
                #expect(again == error, "seed \(seed), \(round)")
            }
        }
    }

    /// The documented example of two hops is a valid file and routes as the page says.
    @Test func documentedHops_routeAsThePageSays() throws {
        let page = try String(
            contentsOf: ShippedTables.folder.deletingLastPathComponent().deletingLastPathComponent()
                .appendingPathComponent("Docs/tables.md"), encoding: .utf8)
        let blocks = page.components(separatedBy: "```").filter { $0.hasPrefix("yaml") && $0.contains("project_org") }
        let text = try #require(blocks.first).dropFirst(4)
        let catalog = try TableCatalog(
            reading: ShippedTables.value(yaml: String(text)), reserved: ShippedTables.reserved)
        var memberships = Memberships(catalog)
        func apply(_ table: String, _ row: RowWrite.Row) throws {
            let declaration = try #require(catalog.find(schema: "public", table: table))
            _ = memberships.apply(RowWrite(.insert, old: nil, new: row), of: declaration)
        }
        try apply("organisation_members", ["id": 1, "user_id": "ann", "org_id": "o1", "state": "active"])
        try apply("organisation_members", ["id": 2, "user_id": "ben", "org_id": "o1", "state": "invited"])
        try apply("projects", ["id": "p1", "org_id": "o1"])
        try apply("tasks", ["id": "t1", "project_id": "p1"])
        let comments = try #require(catalog.find(schema: "public", table: "comments"))
        let change = RowWrite(.insert, old: nil, new: ["id": "c1", "task_id": "t1"])
        let readers = try #require(try comments.reach(of: change, memberships: memberships).new)
        #expect(readers.keys == ["org:o1:member"])
        for (user, isReader) in [("ann", true), ("ben", false)] {
            let keys = memberships.keys(of: .init(tenant: "default", role: "any", claimed: ["user:\(user)"]))
            #expect(readers.isSeen(by: keys, of: "default") == isReader, "\(user)")
        }
    }

    // MARK: The shipped files

    @Test(arguments: ["school", "posts", "todo", "messaging"]) func shippedFile_isRead(_ name: String) throws {
        #expect(!(try ShippedTables.catalog(name).tables.isEmpty))
    }

    @Test func schoolDemo_hasNineTables_andItsUsers() throws {
        #expect(
            Set(try ShippedTables.catalog("school").tables.map(\.name)) == [
                "student_stickers", "attendance", "sessions", "students", "classes", "homework", "student_trophies",
                "student_achievements", "parent_students", "teachers", "profiles",
            ])
    }

    @Test func todo_hasTenLines() throws {
        let text = try String(contentsOf: ShippedTables.folder.appendingPathComponent("todo.yaml"), encoding: .utf8)
        #expect(text.split(separator: "\n").count == 10)
        let table = try #require(try ShippedTables.catalog("todo").tables.first)
        let memberships = Memberships(try ShippedTables.catalog("todo"))
        let change = RowWrite(.insert, old: nil, new: ["id": 1, "user_id": "ann"])
        let invalidations = try table.invalidations(of: change, memberships: memberships)
        #expect(invalidations.map(\.key) == [["todos"]])
        #expect(invalidations.map(\.audience) == [["user:ann"]])
    }

    /// R-ENG-E-6: a post is visible to everyone while it is public, and leaves their sets when it no longer is.
    @Test func hiddenPost_isVisibleToItsAuthorOnly() throws {
        let catalog = try ShippedTables.catalog("posts")
        let table = catalog.tables[0]
        let memberships = Memberships(catalog)
        let old: RowWrite.Row = [
            "id": "p1", "user_id": "ann", "visibility": "public", "like_count": 1, "repost_count": 0, "text": "a",
        ]
        func update(_ new: RowWrite.Row) -> RowWrite { RowWrite(.update, old: old, new: old.merging(new) { $1 }) }
        let hidden = update(["visibility": "private"])
        let reach = try table.reach(of: hidden, memberships: memberships)
        #expect(reach.old?.keys == ["everyone", "user:ann"])
        #expect(reach.new?.keys == ["user:ann"])
        #expect(table.matters(hidden, memberships: memberships))
        #expect(!table.matters(update(["text": "b"]), memberships: memberships))
        func routed(_ new: RowWrite.Row) throws -> RowChange? {
            try table.routing(of: update(new), at: nil, memberships: memberships).changes.first?.change
        }
        #expect(try routed(["text": "b"]) == nil)
        let liked = try #require(try routed(["like_count": 2]))
        #expect(liked.isOnlyCounts)
        #expect(liked.countColumns == ["likeCount": "like_count", "repostCount": "repost_count"])
        let both = try #require(try routed(["like_count": 2, "visibility": "private"]))
        #expect(!both.isOnlyCounts)
        #expect(!both.countColumns.isEmpty)
        #expect(RowChange(reading: both.encoded().bytes) == both)
    }

    // MARK: The JSON Schema

    /// The shipped files satisfy the schema, and files with wrong form do not. Needs python3 with jsonschema.
    @Test func schema_takesTheShippedFiles_andRefusesBadOnes() throws {
        let folder = try TemporaryDirectory()
        func write(_ value: JSONValue, _ name: String) throws {
            var writer = JSONWriter()
            value.write(to: &writer)
            try folder.write(String(decoding: writer.bytes, as: UTF8.self), to: name)
        }
        for name in ["school", "posts", "todo", "messaging"] {
            try write(ShippedTables.document(name), "good-\(name).json")
        }
        try write(ShippedTables.value(yaml: Self.good), "good-notes.json")
        // The schema accepts every file that the reader accepts.
        var random = SeededGenerator(seed: 31)
        let school = try ShippedTables.document("school")
        for round in 0..<effort(quick: 100, full: 500, long: 2_000) {
            let document = Self.mutated(school, &random)
            if (try? TableCatalog(reading: document)) != nil { try write(document, "good-mutated-\(round).json") }
        }
        for (index, bad) in Self.bad.enumerated() where !bad.isBeyondSchema {
            try write(
                ShippedTables.value(yaml: Self.text(bad)),
                "bad-\(index)-\(bad.name.split(separator: " ").joined(separator: "-")).json")
        }
        guard let findings = try Self.schemaFindings(in: folder) else { return }
        #expect(findings == "")
    }

    /// Prints the names of the files for which the schema's verdict differs from the one in the name.
    private static let schemaCheck = """
        import glob, json, os, sys
        try: from jsonschema import Draft202012Validator as Validator
        except ImportError: sys.exit(77)
        schema = json.load(open(sys.argv[1]))
        Validator.check_schema(schema)
        validator = Validator(schema)
        for path in sorted(glob.glob(sys.argv[2] + "/*.json")):
            name = os.path.basename(path)
            if validator.is_valid(json.load(open(path))) != name.startswith("good-"): print(name)
        """

    /// Returns the output of the check, or nil if python3 or its jsonschema is missing.
    private static func schemaFindings(in folder: TemporaryDirectory) throws -> String? {
        let schema = ShippedTables.folder.appendingPathComponent("tables.schema.json")
        let check = ["env", "python3", "-c", schemaCheck, schema.path, folder.path]
        let (status, printed) = try ChildProcess(check, dropsErrors: true).finish()
        if status == 77 || status == 127 { return nil }
        #expect(status == 0)
        return printed
    }

    /// The schema has the same bounds as the reader.
    @Test func schema_hasTheReadersBounds() throws {
        let url = ShippedTables.folder.appendingPathComponent("tables.schema.json")
        let text = try String(contentsOf: url, encoding: .utf8)
        for bound in [
            "\"maxItems\": \(TableLimits.tablesMax)", "\"maxItems\": \(TableLimits.templatesMax)",
            "\"maxItems\": \(TableLimits.columnsMax)", "\"maxItems\": \(TableLimits.keyPartsMax)",
            "\"maxLength\": \(TableLimits.templateBytesMax)", "\"maxLength\": \(TableLimits.keyPartBytesMax)",
            "\"minimum\": \(TableLimits.windowMilliseconds.lowerBound)",
            "\"maximum\": \(TableLimits.windowMilliseconds.upperBound)",
            "\"default\": \(TableLimits.windowDefaultMilliseconds)",
        ] {
            #expect(text.contains(bound), "\(bound)")
        }
        #expect(throws: Never.self) { try JSONValue(parsing: Array(text.utf8)) }
    }
}

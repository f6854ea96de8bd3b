import BellhopClient
import Database
import Foundation
import TestSupport
import Testing

@testable import Service

/// Who may contact whom: each kind of contact, for each relation of two users, under each form of a rule. The answers are
/// compared with an evaluation in SQL over the stored rows, and with `Tests/ContactMatrix.md`, which
/// `WRITE_MATRIX=1` writes.
@Suite(.timed) struct ContactMatrixTests {
    /// The relation of a caller to the addressed user.
    enum Relation: String, CaseIterable, Sendable {
        case stranger = "stranger"
        case classmate = "same class"
        case callerInClass = "same class, the caller by token alone"
        case addressedInClass = "same class, the addressed user by token alone"
        case friend = "friend"
        case friendByToken = "friend by token alone"
        case befriended = "friend in the rows of the addressed user alone"
        case blocked = "blocked by the addressed user"
        case blocking = "blocks the addressed user"
        case bothBlocked = "block each other"
        case blockedFriend = "friend and classmate, blocked"
        case elsewhere = "friend and classmate, in another tenant"
        case blockedElsewhere = "blocked, in another tenant"
        case nobody = "the addressed user does not exist"
        case oneself = "oneself"
        case backend = "backend"

        var caller: String { "c-\(self)" }
        var addressed: String { self == .oneself ? caller : "a-\(self)" }
        /// The classes of the caller's token, and the users of whom it calls the caller a parent.
        var classes: [String] { self == .callerInClass ? [self.class] : [] }
        var children: [String] { self == .friendByToken ? [addressed] : [] }
        var `class`: String { "k-\(self)" }

        var identity: TestService.Identity {
            if self == .backend { return .service() }
            return .init(
                subject: caller,
                metadata: [
                    "class_ids": .array(classes.map(JSON.string)), "child_ids": .array(children.map(JSON.string)),
                ])
        }

        /// The rows of the relation: the table, two values and the tenant.
        var rows: [(table: String, user: String, other: String, tenant: String)] {
            func row(_ table: String, _ user: String, _ other: String, _ tenant: String = "default") -> (
                String, String, String, String
            ) { (table, user, other, tenant) }
            let both = [caller, addressed].map { row("classmates", $0, self.class) }
            switch self {
            case .classmate: return both
            case .callerInClass: return [row("classmates", addressed, self.class)]
            case .addressedInClass: return [row("classmates", caller, self.class)]
            case .friend: return [row("friends", caller, addressed)]
            case .befriended: return [row("friends", addressed, caller)]
            case .blocked: return [row("blocks", addressed, caller)]
            case .blocking: return [row("blocks", caller, addressed)]
            case .bothBlocked: return [row("blocks", caller, addressed), row("blocks", addressed, caller)]
            case .blockedFriend: return both + [row("friends", caller, addressed), row("blocks", addressed, caller)]
            case .elsewhere:
                return [row("friends", caller, addressed, "b")]
                    + both.map { row($0.0, $0.1, $0.2, "b") }
            case .blockedElsewhere: return [row("blocks", addressed, caller, "b")]
            case .stranger, .friendByToken, .nobody, .oneself, .backend: return []
            }
        }
    }

    enum Form: String, CaseIterable, Sendable {
        case absent = "no rule"
        case empty = "`[]`"
        case none = "`any: []`"
        case everyone = "everyone"
        case shared = "class"
        case friend = "friend"
        case not = "not blocked"
        case neither = "no block between them"
        case all = "class or friend, not blocked"

        var rule: String? {
            switch self {
            case .absent: nil
            case .empty: "[]"
            case .none: "{any: []}"
            case .everyone: "{any: [everyone]}"
            case .shared: "{any: ['class:{id}:member']}"
            case .friend: "{any: ['friend-of:{user}', 'student:{user}:parent']}"
            case .not: "{any: [everyone], not: ['blocked-by:{user}']}"
            case .neither: "{any: [everyone], not: ['blocked-by:{user}', 'blocks:{user}']}"
            case .all:
                "{any: ['class:{id}:member', 'friend-of:{user}', 'student:{user}:parent'], not: ['blocked-by:{user}']}"
            }
        }

        var contacts: String? { rule.map { "{conversations: \($0), requests: \($0), follows: \($0)}" } }
    }

    enum Act: String, CaseIterable, Sendable {
        case direct = "Creating a direct conversation"
        case group = "Creating a group"
        case member = "Adding a member to a group"
        case message = "A message of a direct conversation"
        case groupMessage = "A message of a group"
        case request = "Sending a request"
        case follow = "Following"

        /// The status that a contact with oneself has under any rule.
        var oneself: String { [.direct: "422", .request: "422", .follow: "409"][self] ?? "yes" }
    }

    /// An answer to an act under a form of a rule.
    private struct Cell: Sendable {
        let act: Act
        let relation: Relation
        let form: Form
        let result: String
    }

    @Test func everyAct_isAllowedAsTheRowsSay() async throws {
        let cells = try await concurrently(Form.allCases) { try await Self.cells(under: $0) }.flatMap(\.self)
        #expect(cells.count == Act.allCases.count * Relation.allCases.count * Form.allCases.count)
        let file = repository.appendingPathComponent("Tests/ContactMatrix.md")
        let text = Self.page(cells)
        if ProcessInfo.processInfo.environment["WRITE_MATRIX"] != nil {
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == text, "WRITE_MATRIX=1 writes the file")
    }

    private static func cells(under form: Form) async throws -> [Cell] {
        let town = try ContactTown(form.contacts)
        for relation in Relation.allCases {
            for row in relation.rows { try await town.add(row.table, row.user, row.other, in: row.tenant) }
        }
        var cells: [Cell] = []
        var refusals: Set<String> = []
        for relation in Relation.allCases {
            let isAllowed = try allows(form, relation, in: town)
            for act in Act.allCases {
                let prepared = try await prepare(act, relation, in: town)
                let before = try town.footprint()
                let answer = try await perform(act, relation, prepared, in: town)
                let result =
                    answer.isSuccess ? "yes" : answer.refusal == "403 contact.refused" ? "no" : "\(answer.status)"
                cells.append(Cell(act: act, relation: relation, form: form, result: result))
                let place = "\(act) under \(form), \(relation)"
                let wanted =
                    switch relation {
                    case .oneself: act.oneself
                    case .backend: "yes"
                    default: isAllowed || act == .groupMessage ? "yes" : "no"
                    }
                #expect(result == wanted, "\(place): \(answer.text)")
                guard result == "no" else { continue }
                #expect(try town.footprint() == before, "\(place) has left something")
                let request = try #require(answer.json["instance"].string)
                let id = try #require(answer.json["requestId"].string)
                refusals.insert(
                    answer.text.replacingOccurrences(of: request, with: "PATH").replacingOccurrences(of: id, with: "ID")
                )
            }
        }
        #expect(refusals.count <= 1, "\(refusals)")
        try town.service.expectExactCounts()
        return cells
    }

    /// Creates what an act needs, as a backend, and returns its id.
    private static func prepare(_ act: Act, _ relation: Relation, in town: ContactTown) async throws -> String {
        let backend = town.service.client(as: .service())
        let (caller, addressed) = (relation.caller, relation.addressed)
        switch act {
        case .message where relation != .oneself: return try await town.direct(caller, addressed)
        case .message, .groupMessage:
            return try await backend.createConversation(.init(memberIds: [caller, addressed])).value.id
        case .member: return try await backend.createConversation(.init(memberIds: [caller])).value.id
        case .direct, .group, .request, .follow: return ""
        }
    }

    private static func perform(
        _ act: Act, _ relation: Relation, _ id: String, in town: ContactTown
    ) async throws -> ServiceAnswer {
        let (caller, addressed) = (JSON.string(relation.caller), JSON.string(relation.addressed))
        let isBackend = relation == .backend
        func call(_ method: String, _ path: String, _ body: JSON? = nil) async throws -> ServiceAnswer {
            try await town.service.call(method, path, as: relation.identity, body)
        }
        let members: JSON = isBackend ? [caller, addressed] : [addressed]
        switch act {
        case .direct: return try await call("POST", "/v1/conversations", ["kind": "direct", "memberIds": members])
        case .group: return try await call("POST", "/v1/conversations", ["memberIds": members])
        case .member: return try await call("PUT", "/v1/conversations/\(id)/members/\(relation.addressed)")
        case .message, .groupMessage: return try await call("POST", "/v1/conversations/\(id)/messages", ["text": "Hi"])
        case .request:
            var body: [String: JSON] = ["kind": "friend", "toUserId": addressed]
            if isBackend { body["fromUserId"] = caller }
            return try await call("POST", "/v1/requests", .object(body))
        case .follow:
            let follower = isBackend ? relation.caller : "me"
            return try await call("PUT", "/v1/users/\(relation.addressed)/followers/\(follower)")
        }
    }

    // MARK: The second evaluation

    /// Returns whether a form of a rule allows a contact, by the stored rows of the tenant and the caller's token.
    private static func allows(_ form: Form, _ relation: Relation, in town: ContactTown) throws -> Bool {
        let (caller, addressed) = (relation.caller, relation.addressed)
        return try town.service.app.store.read { db in
            func values(_ membership: String, of subject: String) throws -> [(String, Bool)] {
                try db.rows(
                    """
                    SELECT object, counts FROM \(MembershipRegistry.facts, unscoped: .audit("a test"))
                    WHERE tenant = 'default' AND membership = \(membership) AND subject = \(subject)
                    """
                ) { (try $0.text(0), try $0.integer(1) == 1) }
            }
            func has(_ membership: String, _ subject: String, _ object: String) throws -> Bool {
                try values(membership, of: subject).contains { $0 == (object, true) }
            }
            let rows = try values("classmate", of: caller)
            let classes = rows.isEmpty ? relation.classes : rows.filter(\.1).map(\.0)
            let isClassmate = try classes.contains { try has("classmate", addressed, $0) }
            let isFriend = try has("friend", caller, addressed) || relation.children.contains(addressed)
            let isBlocked = try has("blocked", caller, addressed)
            let isBlocking = try has("blocking", caller, addressed)
            return switch form {
            case .absent, .everyone: true
            case .empty, .none: false
            case .shared: isClassmate
            case .friend: isFriend
            case .not: !isBlocked
            case .neither: !isBlocked && !isBlocking
            case .all: (isClassmate || isFriend) && !isBlocked
            }
        }
    }

    // MARK: The page

    private static func page(_ cells: [Cell]) -> String {
        var results: [String: String] = [:]
        for cell in cells { results["\(cell.act) \(cell.relation) \(cell.form)"] = cell.result }
        var text = """
            # Contact matrix

            `ContactMatrixTests` writes this page (`WRITE_MATRIX=1`) and compares it with the answers of the service, on either
            store, and with SQL over the stored rows. A caller has the relation of a line to the addressed user, and the file
            of tables the rule of a column: *yes* is a success, *no* the 403 `contact.refused`, which is the same for all lines
            and leaves nothing behind. A number is another status.

            """
        for act in Act.allCases {
            text += "\n## \(act.rawValue)\n\n"
            text += "| relation | \(Form.allCases.map(\.rawValue).joined(separator: " | ")) |\n"
            text += "|---|\(String(repeating: "---|", count: Form.allCases.count))\n"
            for relation in Relation.allCases {
                let line = Form.allCases.map { results["\(act) \(relation) \($0)"] ?? "?" }
                text += "| \(relation.rawValue) | \(line.joined(separator: " | ")) |\n"
            }
        }
        return text
    }
}

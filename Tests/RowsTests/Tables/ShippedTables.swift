import Foundation
import TestSupport
import Values
import Visibility
import Yams

@testable import Rows

/// The shipped table files, read as the service reads them.
enum ShippedTables {
    static let folder = repository.appendingPathComponent("Deploy/tables")

    /// The names that the service reserves for itself.
    static let reserved = ReservedNames(
        templates: [
            "user:{user_id}", "tenant:admin", "tenant:service", "shop:{shop_id}", "shop:{shop_id}:staff", "everyone",
            "conversation:{id}",
        ], topics: ["personal", "queue"],
        claims: [
            "user:{id}", "student:{id}", "student:{id}:parent", "class:{id}:staff", "class:{id}:member",
            "shop:{id}:staff",
        ])

    static func document(_ name: String) throws -> JSONValue {
        try value(yaml: String(contentsOf: folder.appendingPathComponent("\(name).yaml"), encoding: .utf8))
    }

    static func catalog(_ name: String) throws -> TableCatalog {
        try TableCatalog(reading: document(name), reserved: reserved)
    }

    static func value(yaml: String) throws -> JSONValue {
        guard let node = try Yams.compose(yaml: yaml) else { return .null }
        return value(of: node)
    }

    private static func value(of node: Node) -> JSONValue {
        switch node {
        case .mapping(let mapping):
            var members: [String: JSONValue] = [:]
            for (key, value) in mapping { members[key.string ?? ""] = Self.value(of: value) }
            return .object(members)
        case .sequence(let sequence): return .array(sequence.map { value(of: $0) })
        default:
            if let flag = node.bool, node.scalar?.style == .plain { return .bool(flag) }
            if let number = node.int, node.scalar?.style == .plain { return .integer(Int64(number)) }
            if node.null != nil, node.scalar?.style == .plain { return .null }
            return .string(node.string ?? "")
        }
    }
}

/// A school with two classes and the people of the tests: `s1` and `s2` with teacher `t1` in `c1`, `s3` with `t2` in
/// `c2`, `p1` and `p3` as the parents of `s1` and `s3`, and the admin `a1`.
///
/// Both schools use the same ids, so only the tenant separates them.
struct SchoolWorld {
    static let schools = ["A", "B"]

    let catalog: TableCatalog
    var memberships: Memberships

    init() throws {
        catalog = try ShippedTables.catalog("school")
        memberships = Memberships(catalog)
        for school in Self.schools {
            for (student, schoolClass) in [("s1", "c1"), ("s2", "c1"), ("s3", "c2")] {
                try load(
                    "students",
                    ["id": .string(student), "class_id": .string(schoolClass), "school_id": .string(school)])
            }
            for (schoolClass, teacher) in [("c1", "t1"), ("c2", "t2")] {
                try load(
                    "classes",
                    ["id": .string(schoolClass), "teacher_id": .string(teacher), "school_id": .string(school)])
            }
            for (parent, child) in [("p1", "s1"), ("p3", "s3")] {
                try load(
                    "parent_students",
                    ["parent_id": .string(parent), "student_id": .string(child), "school_id": .string(school)])
            }
        }
    }

    struct Missing: Error {}

    func table(_ name: String) throws -> TableDeclaration {
        guard let table = catalog.find(schema: "public", table: name) else { throw Missing() }
        return table
    }

    mutating func load(_ name: String, _ row: [String: JSONValue]) throws {
        _ = memberships.apply(RowWrite(.insert, old: nil, new: row), of: try table(name))
    }

    /// Returns the scope of a person whose token names only the person.
    func scope(_ id: String, of school: String, claims: Set<String> = []) -> Set<String> {
        var claimed = claims.union(["everyone", AudienceKey.make("user", id)])
        let role: String
        switch id.first {
        case "s":
            role = "student"
            claimed.insert(AudienceKey.make("student", id))
        case "t": role = "teacher"
        case "p": role = "parent"
        default:
            role = "admin"
            claimed.insert("tenant:admin")
        }
        return memberships.keys(of: MembershipClaimant(tenant: ID(school), role: role, claimed: claimed))
    }

    /// Returns the query keys that a person receives for a change, joined by `/`, with a `*` if the cause is
    /// withheld.
    func received(_ change: RowWrite, of name: String, by id: String, of school: String = "A") throws -> Set<String> {
        let keys = scope(id, of: school)
        let received = try table(name).invalidations(of: change, memberships: memberships)
            .filter { $0.tenant == ID(school) && !keys.isDisjoint(with: $0.audience) }
        return Set(
            received.map {
                $0.key.joined(separator: "/") + (keys.isDisjoint(with: $0.causeAudience) ? "*" : "")
            })
    }
}

extension RowAudience {
    func isSeen(by keys: Set<String>, of tenant: String) -> Bool {
        self.tenant == ID(tenant) && !keys.isDisjoint(with: self.keys)
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    public init(stringLiteral text: String) { self = .string(text) }
    public init(integerLiteral number: Int64) { self = .integer(number) }
}

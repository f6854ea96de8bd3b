import Values

extension SQL {
    /// The builder of an interpolated `SQL` literal.
    public struct StringInterpolation: StringInterpolationProtocol {
        private(set) var sql = SQL(unchecked: "")
        /// The pending subquery without a name. The following text shows whether the author gave it one.
        private var unnamedSubquery: String?

        public init(literalCapacity: Int, interpolationCount: Int) {
            // Includes room for a usual policy, so that most statements are built with one allocation.
            sql.text.reserveCapacity(literalCapacity + interpolationCount * 24)
            sql.binds.reserveCapacity(interpolationCount + 2)
        }

        public mutating func appendLiteral(_ literal: String) {
            if unnamedSubquery != nil { nameSubquery(before: literal) }
            sql.text += literal
        }

        public mutating func appendInterpolation<Value: SQLBindable>(_ value: Value) {
            if unnamedSubquery != nil { nameSubquery(before: "?") }
            sql.text += "?"
            sql.binds.append(value.sqlValue)
        }

        /// Appends the value of a nullable column. It is a separate overload, because the compiler warns about an
        /// Optional passed to a generic parameter in a literal.
        public mutating func appendInterpolation<Value: SQLBindable>(_ value: Value?) {
            appendInterpolation(value?.sqlValue ?? .null)
        }

        public mutating func appendInterpolation(_ fragment: SQL) {
            if unnamedSubquery != nil { nameSubquery(before: fragment.text) }
            sql.append(fragment)
        }

        public mutating func appendInterpolation<Value: SQLBindable>(values: some Sequence<Value>) {
            if unnamedSubquery != nil { nameSubquery(before: "(") }
            var isFirst = true
            for value in values {
                sql.text += isFirst ? "(?" : ", ?"
                sql.binds.append(value.sqlValue)
                isFirst = false
            }
            sql.text += isFirst ? "(SELECT NULL WHERE FALSE)" : ")"
        }

        public mutating func appendInterpolation(_ table: Table, visibleTo scope: Scope) {
            precondition(
                writtenVerb() == nil, "a statement that writes requires writableBy instead of visibleTo: \(sql.text)")
            appendSubquery(of: table, where: table.readPredicate(for: scope))
        }

        public mutating func appendInterpolation(_ table: Table, writableBy scope: Scope) {
            guard let verb = writtenVerb() else {
                appendSubquery(of: table, where: table.writePredicate(for: scope))
                return
            }
            appendTarget(table, verb, .of(scope))
        }

        /// Appends a table for what the service does inside one tenant, whichever caller asks for it.
        public mutating func appendInterpolation(_ table: Table, within tenant: ID<Tenant>, _: Unscoped) {
            sql.enter(Fence(tenant: tenant, within: [table.name]))
            if let verb = writtenVerb() { return appendTarget(table, verb, .ofTenant) }
            if tenant.isBoundLater {
                let place = sql.parameters
                sql.name { $0.fence?.places.append(place) }
            } else {
                sql.binds.append(.text(tenant.text))
            }
            appendSubquery(table.ofTenant, named: table.name)
        }

        /// Appends a table for what the service does for one user. The table must name the user of a row in one column.
        public mutating func appendInterpolation(_ table: Table, of user: ID<User>, in tenant: ID<Tenant>) {
            guard let ofUser = table.ofUser else { preconditionFailure("no column names the user: \(table.name)") }
            sql.enter(Fence(tenant: tenant, user: user, owned: [table.name]))
            if let verb = writtenVerb() { return appendTarget(table, verb, .ofUser) }
            appendSubquery(ofUser, named: table.name)
            sql.binds.append(.text(tenant.text))
            sql.binds.append(.text(user.text))
        }

        /// Appends a table whose rows name no tenant.
        public mutating func appendInterpolation(_ service: ServiceTable) {
            if unnamedSubquery != nil { nameSubquery(before: service.table.name) }
            sql.text += service.table.name
            sql.name { $0.unscoped.append(service.table.name) }
        }

        private mutating func appendTarget(_ table: Table, _ verb: WriteTarget.Verb, _ rows: WriteTarget.Rows) {
            precondition(sql.target == nil, "a statement may write only one table: \(sql.text)")
            sql.text += table.name
            let target = WriteTarget(
                verb: verb, table: table, rows: rows, textOffset: sql.text.utf8.count, bindOffset: sql.binds.count)
            sql.name { $0.target = target }
        }

        public mutating func appendInterpolation(_ table: Table, unscoped: Unscoped) {
            if unnamedSubquery != nil { nameSubquery(before: table.name) }
            sql.text += table.name
            sql.name { $0.unscoped.append(table.name) }
        }

        private mutating func appendSubquery(_ subquery: String, named name: String) {
            if unnamedSubquery != nil { nameSubquery(before: "(") }
            sql.text += subquery
            unnamedSubquery = name
        }

        private mutating func appendSubquery(of table: Table, where predicate: SQL) {
            if unnamedSubquery != nil { nameSubquery(before: "(") }
            sql.text += "(SELECT * FROM "
            sql.text += table.name
            sql.text += " WHERE "
            sql.text += predicate.text
            sql.text += ")"
            sql.binds += predicate.binds
            unnamedSubquery = table.name
            sql.name { $0.scoped.append(table.name) }
        }

        /// Names the last subquery after its table, unless the following text starts with `AS`.
        mutating func nameSubquery(before literal: String) {
            guard let name = unnamedSubquery else { return }
            let rest = literal.utf8.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }
            // An empty literal comes between two interpolations, or at the very end.
            let head = Array(rest.prefix(3))
            let isNamed =
                head.count == 3 && head[0] | 0x20 == UInt8(ascii: "a") && head[1] | 0x20 == UInt8(ascii: "s")
                && head[2] <= UInt8(ascii: " ")
            if !isNamed {
                sql.text += " AS "
                sql.text += name
            }
            unnamedSubquery = nil
        }

        /// Returns the verb if the statement writes to the table whose name comes next.
        private func writtenVerb() -> WriteTarget.Verb? {
            if endsWith("UPDATE") { return .update }
            if endsWith("INTO") {
                // REPLACE deletes conflicting rows, regardless of write policies.
                precondition(
                    !endsWith("REPLACE INTO"), "a scoped statement requires ON CONFLICT … DO UPDATE: \(sql.text)")
                return .insert
            }
            if endsWith("DELETE FROM") { return .delete }
            return nil
        }

        /// Whether the text ends with the words, in any case, followed by white space.
        private func endsWith(_ words: StaticString) -> Bool {
            sql.text.withUTF8Bytes { text in
                var end = text.count
                while end > 0, text[end - 1] <= UInt8(ascii: " ") { end -= 1 }
                let start = end - words.utf8CodeUnitCount
                return start >= 0
                    && (0..<words.utf8CodeUnitCount).allSatisfy { index in
                        let (found, wanted) = (text[start + index], words.utf8Start[index])
                        return found == wanted || (found <= UInt8(ascii: " ") && wanted == UInt8(ascii: " "))
                            || (found & 0xDF == wanted && wanted >= UInt8(ascii: "A"))
                    }
            }
        }
    }
}

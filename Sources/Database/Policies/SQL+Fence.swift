import Threads
import Values

extension SQL {
    /// Returns a statement that writes rows of a tenant, or of a user of a tenant.
    ///
    /// - `UPDATE`, `DELETE`, and the update of `ON CONFLICT … DO UPDATE` touch only these rows, and cannot move them.
    /// - `INSERT` gives the tenant, and the user, as a value. It is compared here, so that the statement needs no check
    ///   afterwards and can run together with others.
    func wovenInFence(_ target: WriteTarget) -> Woven {
        guard let fence, let tables else { preconditionFailure("a statement in a fence has one: \(text)") }
        precondition(!fence.tenant.isBoundLater, "the statement has no tenant yet: \(text)")
        let isOfUser = if case .ofUser = target.rows { true } else { false }
        let known = isOfUser ? FencedText.ofUser : FencedText.ofTenant
        let fenced = tables.fenced(text) { known.find(text) { FencedText(text, target, isOfUser: isOfUser) } }
        var woven = Woven(text: fenced.text, of: self, in: fence)
        woven.isOutside =
            !has(fence.tenant.text, at: fenced.tenantPlaces)
            || (isOfUser && !has(fence.user?.text ?? "", at: fenced.userPlaces))
        if let place = fenced.conditionPlace {
            if isOfUser { woven.binds.insert(.text(fence.user?.text ?? ""), at: place) }
            woven.binds.insert(.text(fence.tenant.text), at: place)
        }
        return woven
    }

    /// Returns whether all these values are the text. Compares bytes, as the database does.
    private func has(_ text: String, at places: [Int]) -> Bool {
        places.allSatisfy { place in
            guard case .text(let value) = binds[place] else { return false }
            return value.hasBytes(of: text)
        }
    }
}

/// A writing statement with the condition of its fence, as made from the text of its author.
final class FencedText: Sendable {
    static let ofTenant = KnownTexts<FencedText>()
    static let ofUser = KnownTexts<FencedText>()

    let source: String
    let text: String
    /// The number of binds before the binds of the condition; nil without a condition.
    let conditionPlace: Int?
    /// The binds that are the tenants, and the users, of inserted rows.
    let tenantPlaces: [Int]
    let userPlaces: [Int]

    init(_ text: String, _ target: WriteTarget, isOfUser: Bool) {
        source = text
        let clauses = WriteClauses.find(in: text, target)
        let columns = [target.table.tenantColumn] + (isOfUser ? [target.table.userColumn ?? ""] : [])
        for column in columns {
            precondition(!clauses.setColumns.contains(column), "a row must stay where it is: \(text)")
        }
        if clauses.filtersExistingRows {
            let prefix = clauses.alias ?? target.table.name
            let condition = columns.map { "\(prefix).\($0) = ?" }.joined(separator: " AND ")
            self.text = clauses.text(text, narrowedBy: condition)
            conditionPlace = clauses.conditionStart.binds
        } else {
            self.text = text
            conditionPlace = nil
        }
        var rows = InsertedRows(text, target)
        let places = target.verb == .insert ? rows.places(of: columns) : [[], []]
        (tenantPlaces, userPlaces) = (places[0], isOfUser ? places[1] : [])
    }
}

/// A cache of what was made from texts of statements. A connection caches statements by their finished text, which must be
/// made first: 39,000 instructions for an `UPDATE` of 250 bytes, and 1,500 with this cache.
final class KnownTexts<Value: Sendable>: Sendable {
    /// Our own texts are some hundred, in several forms each. Without this limit, texts made at run time would fill the
    /// memory.
    private let textsMax = 4096

    private let known = Locked<[StatementText: Value]>([:])

    func find(_ text: String, make: () -> Value) -> Value {
        let key = StatementText(text: text)
        if let found = known.withLock({ $0[key] }) { return found }
        let made = make()
        known.withLock { known in
            if known.count >= textsMax { known = [:] }
            known[key] = made
        }
        return made
    }
}

/// The text of a statement as a hash key. The texts are long, few, and only our own, so hashing some bytes of each is
/// enough.
struct StatementText: Hashable, Sendable {
    let text: String

    static func == (left: Self, right: Self) -> Bool { left.text.hasBytes(of: right.text) }

    func hash(into hasher: inout Hasher) {
        text.withUTF8Bytes { bytes in
            let raw = UnsafeRawBufferPointer(bytes)
            hasher.combine(raw.count)
            hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: raw.dropFirst(raw.count / 2).prefix(16)))
            hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: raw.suffix(24)))
        }
    }
}

/// Reads the rows of an INSERT: the list of columns, and the items of each row of `VALUES` or of `SELECT`.
private struct InsertedRows {
    private struct Item {
        let text: Substring.UTF8View
        /// The number of binds before the item.
        let binds: Int
    }

    private let text: String
    private var rest: Substring.UTF8View
    private var binds: Int

    init(_ text: String, _ target: WriteTarget) {
        self.text = text
        rest = text.utf8.dropFirst(target.textOffset)
        binds = target.bindOffset
    }

    /// Returns the places of the binds that are the values of these columns. Every row must have them.
    mutating func places(of wanted: [String]) -> [[Int]] {
        let names = items(after: "(", until: ")").map { String(Substring($0.text)) }
        let indexes = wanted.map { column in
            guard let index = names.firstIndex(of: column) else {
                preconditionFailure("an inserted row must name its \(column): \(text)")
            }
            return index
        }
        var places = wanted.map { _ in [Int]() }
        skipSpace()
        let isSelect = rest.starts(with: "SELECT".utf8)
        repeat {
            let row = isSelect ? items(after: "SELECT", until: "FROM") : items(after: "(", until: ")")
            for (column, index) in indexes.enumerated() {
                precondition(
                    index < row.count && row[index].text.elementsEqual("?".utf8),
                    "the \(wanted[column]) of an inserted row must be a value: \(text)")
                places[column].append(row[index].binds)
            }
            skipSpace()
        } while !isSelect && rest.first == UInt8(ascii: ",")
        return places
    }

    private mutating func skipSpace() { rest = rest.drop { $0 <= UInt8(ascii: " ") } }

    /// Returns the items of a list, without spaces around them, and moves behind it.
    private mutating func items(after start: String, until end: String) -> [Item] {
        while !rest.isEmpty, !rest.starts(with: start.utf8) { step() }
        rest = rest.dropFirst(start.utf8.count)
        var items: [Item] = []
        var (item, bindsBefore) = (rest, binds)
        var depth = 0
        func add(upTo rest: Substring.UTF8View) {
            let trimmed = item[..<rest.startIndex].drop { $0 <= UInt8(ascii: " ") }
            let count = trimmed.reversed().drop { $0 <= UInt8(ascii: " ") }.count
            items.append(Item(text: trimmed.prefix(count), binds: bindsBefore))
        }
        while let byte = rest.first {
            if depth == 0, rest.starts(with: end.utf8) {
                add(upTo: rest)
                rest = rest.dropFirst(end.utf8.count)
                return items
            }
            if byte == UInt8(ascii: "(") { depth += 1 }
            if byte == UInt8(ascii: ")") { depth -= 1 }
            if byte == UInt8(ascii: ","), depth == 0 {
                add(upTo: rest)
                rest = rest.dropFirst()
                (item, bindsBefore) = (rest, binds)
            } else {
                step()
            }
        }
        add(upTo: rest)
        return items
    }

    /// Moves by one byte, or by a text in quotes.
    private mutating func step() {
        guard let byte = rest.popFirst() else { return }
        if byte == UInt8(ascii: "?") { binds += 1 }
        if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
            rest = rest.drop { $0 != byte }.dropFirst()
        }
    }
}

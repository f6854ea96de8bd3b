import Rows
import Values

/// Reads a filter and, on the next line, a row. The canonical text of a filter must parse to an equal filter. No row
/// may match both a filter and its negation.
let readFilter: FuzzTarget = { input in
    let lines = input.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
    guard let filter = try? Filter(parsing: String(decoding: lines[0], as: UTF8.self)) else { return }
    guard let again = try? Filter(parsing: filter.canonical) else {
        return require(false, "the canonical text is not a filter: \(filter.canonical)")
    }
    require(again == filter, "the canonical text is a different filter: \(filter.canonical)")
    guard lines.count == 2, case .object(let row)? = try? JSONValue(parsing: Array(lines[1]), isExact: true) else {
        return
    }
    let isMatch = filter.matches(row)
    require(again.matches(row) == isMatch, "the canonical text matches differently")
    require((filter.mismatch(in: row) == nil) == isMatch, "the explanation contradicts the match")
    require(filter.matches(old: row, new: nil).old == isMatch, "an old row matches differently")
    let opposite = try? Filter(parsing: "not.\(filter.canonical)")
    require(!isMatch || opposite?.matches(row) != true, "a row matches both a filter and its negation")
}

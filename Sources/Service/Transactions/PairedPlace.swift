/// A place in the order of two texts. The first one contains no line feed.
struct PairedPlace {
    let first: String
    let second: String

    init(_ first: String, _ second: String) {
        (self.first, self.second) = (first, second)
    }

    /// Reads a stored place; the place before all others if there is none.
    init(reading text: String?) {
        let parts = (text ?? "\n").split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).map(
            String.init)
        self.init(parts[0], parts.count > 1 ? parts[1] : "")
    }

    var text: String { "\(first)\n\(second)" }
}

extension Collection<String> {
    /// Returns the hint for someone who wrote an unknown name: the name that may have been meant, or all known ones.
    ///
    /// - Parameter known: The text if no name is close; nil lists them.
    public func hint(for name: some StringProtocol, else known: String? = nil) -> String {
        if let closest = closest(to: String(name)) { return "did you mean \(closest)?" }
        return known ?? "known are \(joined(separator: ", "))"
    }

    /// Returns the element that someone may have meant by a misspelt name; nil if none is close.
    public func closest(to name: String) -> String? {
        let distances = map { ($0, Self.distance($0.lowercased(), name.lowercased())) }
        // Of a short name, three other letters leave nothing in common.
        let limit = Swift.min(3, Swift.max(1, name.count / 2))
        return distances.min { $0.1 < $1.1 }.flatMap { $0.1 <= limit ? $0.0 : nil }
    }

    /// Returns the number of letters to insert, remove or change (Levenshtein distance).
    private static func distance(_ left: String, _ right: String) -> Int {
        let right = Array(right)
        var row = Array(0...right.count)
        for (index, letter) in left.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in right.indices {
                let change = diagonal + (letter == right[column] ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = Swift.min(change, row[column] + 1, row[column + 1] + 1)
            }
        }
        return row[right.count]
    }
}

/// How a list of rows of any length is divided among statements: into parts of 1, 2, 4 and so on rows, the largest first.
///
/// Powers of two: few different texts, whatever the number of rows.
public enum RowParts {
    /// - Parameter most: the rows of the largest part, a power of two.
    public static func ranges(of count: Int, most: Int) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        var start = 0
        while start < count {
            let fitting = 1 << (Int.bitWidth - 1 - (count - start).leadingZeroBitCount)
            let end = start + min(fitting, most)
            ranges.append(start..<end)
            start = end
        }
        return ranges
    }
}

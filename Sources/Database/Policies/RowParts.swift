/// The division of any number of rows among statements: into parts of 1, 2, 4 and so on rows, the largest first.
///
/// Powers of two keep the number of different statement texts small.
public enum RowParts {
    /// Returns the ranges of the parts.
    ///
    /// - Parameter most: The number of rows of the largest part, a power of two.
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

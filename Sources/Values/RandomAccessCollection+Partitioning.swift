extension RandomAccessCollection {
    /// Returns the first index whose element satisfies the predicate, or the end index, by binary search. The elements
    /// that satisfy the predicate must follow all others.
    @inlinable
    public func partitioningIndex(where belongsBehind: (Element) -> Bool) -> Index {
        var (low, count) = (startIndex, self.count)
        while count > 0 {
            let half = count / 2
            let middle = index(low, offsetBy: half)
            if belongsBehind(self[middle]) {
                count = half
            } else {
                low = index(after: middle)
                count -= half + 1
            }
        }
        return low
    }
}

extension SubscriptionMatch {
    func precedes(_ other: SubscriptionMatch) -> Bool {
        slot == other.slot ? ordinal < other.ordinal : slot < other.slot
    }
}

extension [Int32] {
    /// Fills the gap with the last element, and returns the element that moved; nil if the removed one was the last.
    mutating func removeFillingGap(at place: Int) -> Int32? {
        let last = removeLast()
        guard place < count else { return nil }
        self[place] = last
        return last
    }
}

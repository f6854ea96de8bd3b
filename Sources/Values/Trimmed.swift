extension StringProtocol {
    /// The text without white space at its ends.
    public var trimmed: SubSequence {
        let text = drop(while: \.isWhitespace)
        return text.lastIndex { !$0.isWhitespace }.map { text[...$0] } ?? text
    }
}

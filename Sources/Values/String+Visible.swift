extension String {
    /// The text with its control characters and line ends made visible: what others sent must not break a line in two, nor
    /// repaint the terminal of who reads it.
    public var withVisibleControls: String {
        var result = ""
        for scalar in unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                result += scalar == "\n" ? "⏎" : "\\u{\(String(scalar.value, radix: 16))}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

extension String {
    /// The text with visible control characters and line ends. Text from outside must not split a log line or control
    /// the terminal that shows it.
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

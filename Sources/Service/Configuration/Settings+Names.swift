extension Settings.Key {
    /// `rateLimitUser` → `--rate-limit-user`.
    public var flag: String { "--" + Self.words(of: name).joined(separator: "-") }

    /// `rateLimitUser` → `BELLHOP_RATE_LIMIT_USER`.
    public var variable: String { Self.variable(name) }

    static func variable(_ name: String) -> String {
        "BELLHOP_" + words(of: name).joined(separator: "_").uppercased()
    }

    private static func words(of name: String) -> [String] {
        var words: [String] = [""]
        var last: Character = "."
        for character in name {
            if character.isUppercase && last.isLowercase { words.append("") }
            words[words.count - 1] += character.lowercased()
            last = character
        }
        return words
    }
}

extension Settings.Mistake {
    /// Creates a mistake in one setting. It gives the name as in a file and as a variable, because containers use only
    /// variables.
    init(_ name: String, _ problem: String) {
        self.init(description: "\(name) (\(Settings.Key.variable(name))): \(problem)", setting: name)
    }
}

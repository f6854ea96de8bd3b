/// One thing that `bellhop doctor` has looked at, and how it is.
public struct Finding: Sendable, Equatable {
    public enum Grade: String, Sendable {
        case good
        /// Should be mended.
        case warning
        /// Must be mended: something does not work, or is not safe.
        case fault
    }

    public let grade: Grade
    /// What was looked at, in a word or two.
    public let topic: String
    /// How it is, in one line.
    public let text: String
    /// What to do; nil where nothing is to be done.
    public let remedy: String?

    static func good(_ topic: String, _ text: String) -> Finding {
        Finding(grade: .good, topic: topic, text: text, remedy: nil)
    }

    static func warning(_ topic: String, _ text: String, _ remedy: String) -> Finding {
        Finding(grade: .warning, topic: topic, text: text, remedy: remedy)
    }

    static func fault(_ topic: String, _ text: String, _ remedy: String) -> Finding {
        Finding(grade: .fault, topic: topic, text: text, remedy: remedy)
    }
}

/// The result of one check of `bellhop doctor`.
public struct Finding: Sendable, Equatable {
    public enum Grade: String, Sendable {
        case good
        /// Says what takes time.
        case note
        /// Should be fixed.
        case warning
        /// Must be fixed: something does not work, or is not safe.
        case fault
    }

    public let grade: Grade
    /// The subject of the check, in a word or two.
    public let topic: String
    /// The result, in one line.
    public let text: String
    /// The required action, if any.
    public let remedy: String?

    static func good(_ topic: String, _ text: String) -> Finding {
        Finding(grade: .good, topic: topic, text: text, remedy: nil)
    }

    static func note(_ topic: String, _ text: String) -> Finding {
        Finding(grade: .note, topic: topic, text: text, remedy: nil)
    }

    static func warning(_ topic: String, _ text: String, _ remedy: String) -> Finding {
        Finding(grade: .warning, topic: topic, text: text, remedy: remedy)
    }

    static func fault(_ topic: String, _ text: String, _ remedy: String) -> Finding {
        Finding(grade: .fault, topic: topic, text: text, remedy: remedy)
    }
}

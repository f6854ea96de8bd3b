import Values
import Visibility

/// Topics of an app's own, such as `order:{id}`, and who may listen to them.
///
/// A stream names one of them (`order:o1`) and receives what is published to it.
public struct TopicDeclaration: Sendable {
    /// What stands before the colon.
    public let prefix: String
    /// What the topic's id is called in the templates of its audience.
    public let column: String
    public let audience: [AudienceTemplate]

    /// The keys by which one topic is heard, each once.
    public func audience(of id: String) -> [String] {
        var keys: [String] = []
        for template in audience {
            if let key = template.key(of: { _ in id }), !keys.contains(key) { keys.append(key) }
        }
        return keys
    }
}

/// What a file of tables cannot take for its own, since the service has it.
public struct ReservedNames: Sendable {
    /// Templates of the service's own tables. One of the file that could make one of their keys with another meaning
    /// would open their rows.
    let templates: [AudienceTemplate]
    /// Prefixes of the service's own topics.
    let topics: [String]

    public init(templates: [AudienceTemplate] = [], topics: [String] = []) {
        self.templates = templates
        self.topics = topics
    }
}

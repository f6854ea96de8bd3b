import Visibility

/// Topics that an app defines, such as `order:{id}`, with the audience that may subscribe to them.
///
/// A stream subscribes to one of them (`order:o1`) and receives the events that are published to it.
public struct TopicDeclaration: Sendable {
    /// The text before the colon.
    public let prefix: String
    /// The name of the topic's id in the templates of its audience.
    public let column: String
    public let audience: [AudienceTemplate]

    /// Returns the unique keys that may receive one topic.
    public func audience(of id: String) -> [String] {
        var keys: [String] = []
        for template in audience {
            if let key = template.key(of: { _ in id }), !keys.contains(key) { keys.append(key) }
        }
        return keys
    }
}

/// Names that a file of tables cannot declare, because the service uses them.
public struct ReservedNames: Sendable {
    /// Templates of the service's own tables. A template of the file that could make one of their keys with another
    /// meaning would open their rows.
    let templates: [AudienceTemplate]
    /// Prefixes of the service's own topics.
    let topics: [String]
    /// Templates of the keys that tokens give.
    let claims: [AudienceTemplate]

    public init(templates: [AudienceTemplate] = [], topics: [String] = [], claims: [AudienceTemplate] = []) {
        self.templates = templates
        self.topics = topics
        self.claims = claims
    }
}

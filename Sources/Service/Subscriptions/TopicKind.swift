import Rows
import Visibility

/// A kind of shared topic, such as `queue:{shopId}`.
struct TopicKind: Sendable {
    let prefix: String
    /// The set of the topic if that is off; nil if streams can subscribe.
    private(set) var off: FeatureSet?
    /// Keys that allow subscribing; empty for public topics. Subscribers of a public topic receive only visible events.
    let audience: [AudienceTemplate]
    /// Returns the initial state for a stream that subscribes, as an event's name and data, or nil.
    let initial: @Sendable (Transaction, _ id: String) throws -> (String, [UInt8])?

    init(
        prefix: String, initial: @escaping @Sendable (Transaction, _ id: String) throws -> (String, [UInt8])?
    ) {
        self.prefix = prefix
        audience = []
        self.initial = initial
    }

    func off(_ set: FeatureSet) -> TopicKind {
        var kind = self
        kind.off = set
        return kind
    }

    /// Creates the kind of an app's topics, whose state the app manages.
    init(_ declaration: TopicDeclaration) {
        prefix = declaration.prefix
        audience = declaration.audience
        initial = { _, _ in nil }
    }
}

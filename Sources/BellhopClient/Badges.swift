/// All counts of a user as the service sends them, uncapped.
public struct BadgeCounts: Sendable, Hashable {
    public let messages: Int
    public let requests: Int
    public let bell: Int
    public let version: Int
    /// What versions count in: another one after the service's database was restored. Empty from a service that does not
    /// say.
    public let epoch: String

    public init(messages: Int, requests: Int, bell: Int, version: Int, epoch: String = "") {
        self.messages = messages
        self.requests = requests
        self.bell = bell
        self.version = version
        self.epoch = epoch
    }

    /// Nil where the document is no counts payload.
    public init?(_ json: JSON) {
        guard let messages = json["messages"].int, let requests = json["requests"].int, let bell = json["bell"].int,
            let version = json["version"].int
        else { return nil }
        self.init(
            messages: messages, requests: requests, bell: bell, version: version, epoch: json["epoch"].string ?? "")
    }

    public var total: Int { messages + requests + bell }
}

/// All badge counts of a user as the service sends them, uncapped.
public struct BadgeCounts: Sendable, Hashable, Encodable {
    public let messages: Int
    public let requests: Int
    public let bell: Int
    public let total: Int
    public let version: Int
    /// The epoch that versions belong to. It changes when the service's database is restored from a backup. Empty if
    /// the service does not send one.
    public let epoch: String

    public init(messages: Int, requests: Int, bell: Int, version: Int, epoch: String = "") {
        self.messages = messages
        self.requests = requests
        self.bell = bell
        // Does not trap, whatever numbers the answer of another service has.
        total = messages &+ requests &+ bell
        self.version = version
        self.epoch = epoch
    }

    /// Returns nil if the document is not a counts payload.
    public init?(_ json: JSON) {
        guard let messages = json["messages"].int, let requests = json["requests"].int, let bell = json["bell"].int,
            let version = json["version"].int
        else { return nil }
        self.init(
            messages: messages, requests: requests, bell: bell, version: version, epoch: json["epoch"].string ?? "")
    }
}

/// The rules for the names and the number of topics.
package enum Topics {
    /// The maximum number of topics of a stream (`stream.topicsMax` of `/v1/config`).
    package static let countMax = 100

    package static func check(_ topics: [String]) throws(Bellhop.UnusableParameter) {
        for topic in topics where !isTopic(topic) { throw Bellhop.UnusableParameter(name: "topic", value: topic) }
        try checkNumber(of: topics)
    }

    package static func checkNumber(of topics: [String]) throws(Bellhop.UnusableParameter) {
        let count = Set(topics).count
        guard count <= countMax else {
            throw Bellhop.UnusableParameter(name: "topics", value: "\(count) topics, of which a stream has \(countMax)")
        }
    }

    /// `personal`, or a kind and an id: `queue:s1`.
    private static func isTopic(_ topic: String) -> Bool {
        guard topic.utf8.count <= 160, !topic.contains(where: { $0 == "," || $0.isWhitespace }) else { return false }
        guard let colon = topic.firstIndex(of: ":") else { return topic == "personal" }
        return colon > topic.startIndex && topic.index(after: colon) < topic.endIndex
    }
}

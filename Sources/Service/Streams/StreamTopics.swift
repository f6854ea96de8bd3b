import Database
import Values
import Visibility

/// The topics that a client names: `queue:s1`, or `personal`, which every stream includes anyway.
enum StreamTopics {
    static let personal = "personal"

    /// Maximum number of mistakes in one answer. More are not helpful; a list of 12 KB could have 6,000, which would
    /// take milliseconds.
    private static let mistakesMax = 20

    /// Parses a list, without duplicates and without `personal`. It stops at 20 mistakes, each with its place.
    static func parse(
        _ texts: some Sequence<String>, kinds: [TopicKind], at pointer: (_ index: Int) -> String
    ) throws(Failure) -> [String] {
        var topics: [String] = []
        var mistakes: [Failure.Field] = []
        var off: (set: FeatureSet, fields: [Failure.Field])?
        // Bytes, because texts are equal if they are canonically equivalent.
        var seen: Set<[UInt8]> = [Array(personal.utf8)]
        for (index, text) in texts.enumerated() where seen.insert(Array(text.utf8)).inserted {
            if let mistake = mistake(in: text, kinds: kinds) {
                mistakes.append(Failure.Field(pointer(index), mistake))
                if mistakes.count == mistakesMax { break }
            } else if let set = split(text, kinds: kinds)?.kind.off {
                off = (off?.set ?? set, (off?.fields ?? []) + [Failure.Field(pointer(index), Failure.offDetail(set))])
                if off?.fields.count == mistakesMax { break }
            } else if topics.count < StreamLimits.topicsMax {
                topics.append(text)
            } else {
                mistakes.append(Failure.Field(pointer(index), "exceeds the limit of \(StreamLimits.topicsMax) topics"))
                break
            }
        }
        guard mistakes.isEmpty else { throw Failure.invalid(mistakes) }
        if let off { throw Failure.off(off.set, at: off.fields) }
        return topics
    }

    /// Returns the kind and the id of a topic.
    static func split(_ topic: String, kinds: [TopicKind]) -> (kind: TopicKind, id: String)? {
        guard let colon = topic.firstIndex(of: ":") else { return nil }
        guard let kind = kinds.first(where: { $0.prefix == topic[..<colon] }) else { return nil }
        return (kind, String(topic[topic.index(after: colon)...]))
    }

    /// Refuses an app's own topics that the caller's keys do not open.
    ///
    /// Keys that rows of the service grant are not looked up here. A topic that such a key may open is accepted, and a
    /// stream without the key receives no events of it.
    ///
    /// - Parameter pointer: Returns the place of a topic in the request. The failure lists up to 20 refused topics, so
    ///   that a client can leave them out at once.
    static func requireReadable(
        _ topics: [String], by caller: Caller, _ dependencies: StreamDependencies,
        at pointer: (_ topic: String) -> String
    ) throws(Failure) {
        var keys: Set<String>?
        var refused: [String] = []
        for topic in topics {
            guard let (kind, id) = split(topic, kinds: dependencies.topicKinds), !kind.audience.isEmpty else {
                continue
            }
            let held = keys ?? dependencies.memberships.scoped(caller).scope.keys
            keys = held
            let isReadable = kind.audience.contains { template in
                template.key { _ in id }.map(held.contains) ?? false
                    || dependencies.live.contains { template.mayEqual($0.grant.grantedKey) }
            }
            if !isReadable { refused.append(topic) }
            if refused.count == mistakesMax { break }
        }
        guard let first = refused.first else { return }
        let fields = refused.map {
            Failure.Field(pointer($0), "the token has no key that permits subscribing to \($0)")
        }
        throw Failure(
            .forbidden, "topic.forbidden", "The token has no key that permits subscribing to \(first).", fields: fields)
    }

    /// Returns the place of a topic in a body's list.
    static func place(of topic: String, in named: [String]) -> String {
        "/topics/\(named.firstIndex { $0.hasBytes(of: topic) } ?? 0)"
    }

    private static func mistake(in text: String, kinds: [TopicKind]) -> String? {
        guard text.utf8.count <= StreamLimits.topicBytesMax else {
            return "must have at most \(StreamLimits.topicBytesMax) bytes"
        }
        guard let (_, id) = split(text, kinds: kinds), Fields.isIdentifier(id) else {
            let known = kinds.filter { $0.off == nil }.map { "\($0.prefix):{id}" }.sorted().joined(separator: ", ")
            return "is not a topic; the topics are \(personal)\(known.isEmpty ? "" : ", ")\(known)"
        }
        return nil
    }
}

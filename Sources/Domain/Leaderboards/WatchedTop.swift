import Values

/// The first lines of a leaderboard, as last sent to its watchers. The next update is the difference.
public struct WatchedTop: Sendable, Hashable {
    /// The visible data of one user. The place follows from the order of the lines.
    public struct Line: Sendable, Hashable {
        public let userId: ID<User>
        public let score: Int64
        public let displayName: String?

        public init(userId: ID<User>, score: Int64, displayName: String?) {
            self.userId = userId
            self.score = score
            self.displayName = displayName
        }
    }

    /// A line with its new place. It leaves out what the watcher already knows.
    public struct Move: Sendable, Hashable {
        public let line: Line
        public let place: Place
        /// Whether only the place changed, because other entries passed; score and name are unchanged.
        public let isOnlyPlace: Bool
    }

    /// The lines in order, best first.
    public let lines: [Line]

    public init(_ lines: [Line]) { self.lines = lines }

    /// The places of the lines. Equal scores share a rank.
    public var places: [Place] {
        var places: [Place] = []
        places.reserveCapacity(lines.count)
        for (index, line) in lines.enumerated() {
            let isShared = index > 0 && lines[index - 1].score == line.score
            places.append(Place(rank: isShared ? places[index - 1].rank : index + 1, position: index + 1))
        }
        return places
    }

    /// Returns the difference to an earlier top: the new or changed lines, and the removed users.
    public func changes(since before: WatchedTop) -> (moved: [Move], left: [ID<User>]) {
        var known: [ID<User>: (line: Line, place: Place)] = [:]
        for (line, place) in zip(before.lines, before.places) { known[line.userId] = (line, place) }
        var moved: [Move] = []
        for (line, place) in zip(lines, places) {
            let former = known.removeValue(forKey: line.userId)
            guard former?.line != line || former?.place != place else { continue }
            moved.append(Move(line: line, place: place, isOnlyPlace: former?.line == line))
        }
        return (moved, before.lines.lazy.map(\.userId).filter { known[$0] != nil })
    }
}

/// The stored form: `[userId, score, name or null]` for each line.
extension WatchedTop: JSONWritable {
    public func write(to writer: inout JSONWriter) {
        writer.array(lines.lazy.map(StoredLine.init))
    }

    /// Reads the stored form; nil if it is malformed.
    public init?(reading bytes: [UInt8]) {
        guard case .array(let items)? = try? JSONValue(parsing: bytes) else { return nil }
        var lines: [Line] = []
        for item in items {
            guard case .array(let parts) = item, parts.count == 3, case .string(let user) = parts[0],
                case .integer(let score) = parts[1]
            else { return nil }
            var name: String?
            if case .string(let text) = parts[2] { name = text }
            lines.append(Line(userId: ID(user), score: score, displayName: name))
        }
        self.init(lines)
    }

    private struct StoredLine: JSONWritable {
        let line: Line

        init(_ line: Line) { self.line = line }

        func write(to writer: inout JSONWriter) {
            writer.array { writer in
                writer.value(line.userId)
                writer.value(line.score)
                writer.value(line.displayName)
            }
        }
    }
}

extension WatchedTop.Move: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("userId", line.userId)
        if !isOnlyPlace {
            writer.member("displayName", line.displayName)
            writer.member("score", line.score)
        }
        writer.member("rank", place.rank)
        writer.member("position", place.position)
    }
}

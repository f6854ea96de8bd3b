import Realtime
import Rows
import Threads
import Values

@testable import Service

extension EventRouterSimulation {
    /// An event of the log.
    struct Entry {
        let sequence: Int64
        let tenant: ID<Tenant>
        /// Its number in the story and in its data.
        let number: Int
        let audience: [String]
        let topic: String?
        /// The row change; nil for an event that all of its streams receive alike.
        let change: RowChange?
    }

    /// An event that gave a user a key, or took one away.
    struct KeyStep {
        let sequence: Int64
        let owner: Owner
        let key: String
        let isHeld: Bool
        /// Whether a row of the service grants the key; false for a membership of the app.
        let isGrant: Bool
    }

    /// What the requests of a stream determine. They reach its shard in order.
    struct Wishes {
        var tokenKeys: Set<String>
        var topics: [String]
        var tables: [TableSubscription] = []
    }

    /// What an event shows to a stream: in at least one, and in all of the states in which the event may have met it.
    struct Expectation {
        var may: Set<String> = []
        var must: Set<String>?

        mutating func add(_ shown: Set<String>) {
            may.formUnion(shown)
            must = must?.intersection(shown) ?? shown
        }

        mutating func add(_ other: Expectation) {
            may.formUnion(other.may)
            must = must?.intersection(other.must ?? []) ?? other.must
        }
    }

    /// The bounds of the states in which an event may have met a stream.
    struct Window {
        let wishes: ArraySlice<Wishes>
        let start: Int64
        let membershipsEnd: Int64
        let grantsEnd: Int64
    }

    /// The log as the model knows it. It walks over all events and all steps.
    struct Model {
        var entries: [Entry] = []
        var steps: [KeyStep] = []

        func expectation(of entry: Entry, for owner: Owner, in window: Window) -> Expectation {
            var expectation = Expectation()
            guard entry.tenant == owner.tenant else { return expectation }
            for wishes in window.wishes {
                for membership in points(owner, isGrant: false, window.start, window.membershipsEnd) {
                    for grant in points(owner, isGrant: true, window.start, window.grantsEnd) {
                        let keys = wishes.tokenKeys.union(membership).union(grant)
                        expectation.add(Self.shown(entry, to: keys, wishes))
                    }
                }
            }
            return expectation
        }

        /// Returns the keys of a user at the start and after each step up to the end.
        private func points(_ owner: Owner, isGrant: Bool, _ start: Int64, _ end: Int64) -> [Set<String>] {
            var (keys, found): (Set<String>, [Set<String>]) = ([], [])
            for step in steps where step.isGrant == isGrant && step.owner == owner {
                guard step.sequence <= max(start, end) else { break }
                if step.sequence > start { found.append(keys) }
                if step.isHeld { keys.insert(step.key) } else { keys.remove(step.key) }
            }
            return found + [keys]
        }

        private static func shown(_ entry: Entry, to keys: Set<String>, _ wishes: Wishes) -> Set<String> {
            guard let change = entry.change else {
                let isSubscribed = entry.topic.map { wishes.topics.contains($0) } ?? true
                return isSubscribed && !keys.isDisjoint(with: entry.audience) ? ["\(entry.number)"] : []
            }
            var parts: [RowTransition: [String]] = [:]
            for table in wishes.tables where table.table == change.table {
                let transition = table.transition(
                    change.operation.subscribed, old: change.old, new: change.new,
                    seesOld: !keys.isDisjoint(with: change.oldReaders),
                    seesNew: !keys.isDisjoint(with: change.newReaders))
                if let transition { parts[transition, default: []].append(table.id) }
            }
            return Set(parts.map { Self.text(entry.number, $0.rawValue, $1) })
        }

        /// The part of a row change that a stream receives.
        static func text(_ number: Int, _ transition: String, _ subscriptions: [String]) -> String {
            "\(number) \(transition) \(subscriptions.sorted())"
        }
    }

    /// A request for the rows of tables that changed after an event. The changes until its answer have no ids.
    struct RowsRequest {
        let since: Int64
        let wishes: Wishes
        let isAnswered = Locked(false)
        /// The newest event of the log when the stream had the answer.
        var through = Int64.max

        func contains(_ entry: Entry) -> Bool {
            entry.change != nil && entry.sequence > since && entry.sequence <= through
        }
    }

    /// A stream from its opening to its end.
    final class Session {
        let owner: Owner
        let shard: Int
        let tokenId: String
        let client: SteppedClient
        /// The last event that the client has; nil if it asks for no replay.
        let cursor: Int64?
        var wishes: [Wishes]
        /// The events that have met the stream, with the wishes at that time, until its replay has ended.
        var pending: [(entry: Int, wishes: Int)] = []
        var expectations: [Int: Expectation] = [:]
        /// The last event that its shard had handled when it joined; nil before.
        var joinedAt: Int64?
        /// The newest event of the log when its beginning had been read.
        var begunAt: Int64?
        var isLive = false
        var isOver = false
        /// The request for rows that was not answered yet, and the first one that was.
        var asked: RowsRequest?
        var answered: RowsRequest?

        init(
            _ owner: Owner, shard: Int, tokenId: String, client: SteppedClient, cursor: Int64?, _ wishes: Wishes
        ) {
            (self.owner, self.shard, self.tokenId) = (owner, shard, tokenId)
            (self.client, self.cursor, self.wishes) = (client, cursor, [wishes])
        }
    }
}

// MARK: - Received events

extension EventRouterSimulation {
    struct Received {
        var id: Int64?
        var name = ""
        var data: [String: JSONValue] = [:]

        /// What the model calls it; nil for notices of the stream.
        var text: String? {
            if name == "sim:event" { return data.integer("number").map { "\($0)" } }
            guard name == "table:change", let ids = data.strings("subscriptionIds"), let change = data.string("change"),
                let row = data.object("record") ?? data.object("oldRecord"), let number = row.integer("id")
            else { return nil }
            return Model.text(Int(number), change, ids)
        }

        var number: Int? { text.flatMap { Int($0.prefix { $0 != " " }) } }
    }

    /// Returns the complete events that a client has received.
    static func received(by client: SteppedClient, _ ids: EventIDs) -> [Received] {
        var (found, next): ([Received], Received) = ([], Received())
        for line in client.lines {
            if line.isEmpty {
                if next.id != nil || !next.name.isEmpty { found.append(next) }
                next = Received()
            } else if line.hasPrefix("id: ") {
                next.id = Cursor(String(line.dropFirst(4))).flatMap(ids.sequence)
            } else if line.hasPrefix("event: ") {
                next.name = String(line.dropFirst(7))
            } else if line.hasPrefix("data: "),
                case .object(let members)? = try? JSONValue(
                    parsing: Array(line.dropFirst(6).utf8))
            {
                next.data = members
            }
        }
        return found
    }
}

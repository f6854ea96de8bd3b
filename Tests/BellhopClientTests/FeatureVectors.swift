import Foundation

@testable import BellhopClient

/// The test vectors of the feature machines.
enum FeatureVectors {
    struct Running<Machine: FeatureMachine>: VectorMachine where Machine.OwnCommand: VectorCommand {
        var machine: Machine

        mutating func receive(_ input: JSON) throws -> [JSON] {
            machine.receive(try FeatureVectors.input(input), now: input["now"].int ?? 0).map(FeatureVectors.json)
        }

        func kept() throws -> JSON {
            try machine.kept.map { try JSON(parsing: Bellhop.encoder.encode($0)) } ?? .null
        }

        /// In vectors, the members of a list and of filters stand beside the others.
        func described() throws -> JSON {
            let state = try JSON(parsing: Bellhop.encoder.encode(machine))
            return state.with(state["list"].object ?? [:]).with(state["filters"].object ?? [:])
        }
    }

    /// The machines, by the names of their files.
    static let machines: [String: @Sendable (JSON) -> any VectorMachine] = [
        "booking": running { BookingMachine(bookingId: $0["bookingId"].string ?? "") },
        "conversation": running { ConversationMachine(conversationId: $0["conversationId"].string ?? "") },
        "conversations": running { ConversationsMachine(user: $0["user"].string) },
        "counts": running { CountsMachine(user: $0["user"].string) },
        "dj": running { DJMachine(shopId: $0["shopId"].string ?? "") },
        "feed": running { FeedMachine(user: $0["user"].string) },
        "invalidation": running { options in
            let keys = options["scopeKeys"].array?.map(\.strings) ?? [["profile"], ["classes"]]
            return InvalidationMachine(clientId: options["clientId"].string, scopeKeys: keys)
        },
        "leaderboard": running {
            LeaderboardMachine(challengeId: $0["challengeId"].string ?? "", user: $0["user"].string)
        },
        "notifications": running { _ in NotificationsMachine() },
        "push": running { PushMachine(deviceId: $0["deviceId"].string ?? "") },
        "requests": running { options in
            let direction = options["direction"].string.map(Bellhop.ListRequestsDirection.init) ?? .incoming
            return RequestsMachine(direction: direction, user: options["user"].string)
        },
        "queue": running { QueueMachine(shopId: $0["shopId"].string ?? "") },
        "rows": running { options in
            var query = RowsMachine.Query(options["table"].string ?? "", filter: options["filter"].string ?? "")
            query.schema = options["schema"].string ?? query.schema
            query.event = options["event"].string ?? query.event
            query.column = options["column"].string ?? query.column
            query.select = options["select"].array.map { _ in options["select"].strings }
            return RowsMachine(query)
        },
        "visible-rows": running { options in
            var table = VisibleRowsMachine.Table(options["table"].string ?? "")
            table.schema = options["schema"].string ?? table.schema
            table.select = options["select"].array.map { _ in options["select"].strings }
            var limits = VisibleRowsMachine.Limits()
            options["limits"].model().map { limits.take($0) }
            return VisibleRowsMachine(table, limits: limits)
        },
    ]

    private static func running<Machine: FeatureMachine>(
        _ make: @escaping @Sendable (JSON) -> Machine
    ) -> @Sendable (JSON) -> any VectorMachine where Machine.OwnCommand: VectorCommand {
        { Running(machine: make($0)) }
    }

    fileprivate static func input<Command: VectorCommand>(_ json: JSON) throws -> FeatureInput<Command> {
        switch json["type"].string ?? "" {
        case "start": return .start(user: json["user"].string, isLive: json["connection"].string == "live")
        case "event":
            let event = json["event"]
            return .event(FeatureEvent(event["name"].string ?? "", event["data"], id: event["id"].string ?? ""))
        case "answer":
            let after = json["headers"]["retry-after"].string.flatMap(Int.init)
            return .answer(
                as: json["as"].string ?? "", status: json["status"].int ?? 0, body: json["body"],
                retryAfterSeconds: after)
        case "connection": return .connection(isLive: json["status"].string == "live")
        case "lifecycle": return .lifecycle(isForeground: json["foreground"].bool ?? true)
        case "watch": return .watch(isWatched: json["watched"].bool ?? true)
        case "timer": return .timer(json["name"].string ?? "")
        case "user": return .user(json["user"].string, isSignedIn: json["signedIn"].bool ?? false)
        case "restore": return .restore(json["kept"].data)
        case "waiting": return .waiting(json["items"].model() ?? [])
        case "refresh": return .refresh
        default: return .command(try Command(json))
        }
    }

    fileprivate static func json(_ action: FeatureAction) -> JSON {
        switch action {
        case .fetch(let path, let name): return ["do": "fetch", "path": .string(path), "as": .string(name)]
        case .send(let method, let path, let body, let headers, let name):
            var members: [String: JSON] = [
                "do": "send", "method": .string(method), "path": .string(path), "as": .string(name),
                "body": body ?? .null,
                "headers": .object(headers.mapValues(JSON.string)),
            ]
            if body == nil { members["body"] = nil }
            if headers.isEmpty { members["headers"] = nil }
            return .object(members)
        case .timer(let name, let at):
            return ["do": "timer", "name": .string(name), "at": at.map { .integer(Int64($0)) } ?? .null]
        case .play(let haptic, let sound, let key):
            return [
                "do": "play", "haptic": haptic.map { JSON(model: $0) } ?? .null, "sound": .bool(sound),
                "key": .string(key),
            ]
        case .publish(let name, let data): return ["do": "publish", "name": .string(name), "data": data]
        case .call(let method, let path, let body, let name):
            var members: [String: JSON] = [
                "do": "call", "method": .string(method), "path": .string(path), "as": .string(name),
            ]
            members["body"] = body
            return .object(members)
        case .push(let action): return json(action)
        case .subscribe(let topics): return ["do": "subscribe", "topics": .array(topics.map(JSON.string))]
        case .tables(let tables, let lastEventId, let name):
            var members: [String: JSON] = ["do": "tables", "tables": .array(tables), "as": .string(name)]
            if let lastEventId { members["lastEventId"] = .string(lastEventId) }
            return .object(members)
        }
    }

    private static func json(_ action: PushAction) -> JSON {
        switch action {
        case .show(let alert):
            [
                "do": "show", "title": .string(alert.title), "body": .string(alert.body), "tag": .string(alert.tag),
                "silent": .bool(alert.isSilent), "data": alert.data,
            ]
        case .close(let tags): ["do": "close", "tags": .array(tags.map(JSON.string))]
        case .badge(let count): ["do": "badge", "count": JSON(count)]
        }
    }
}

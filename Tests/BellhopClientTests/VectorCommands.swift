@testable import BellhopClient

/// A command that the vectors give as JSON.
protocol VectorCommand: Sendable, Hashable {
    /// Throws for an unknown command, and for one without its members.
    init(_ json: JSON) throws
}

/// A command that the machine does not have, or that lacks a member.
struct UnknownCommand: Error, CustomStringConvertible {
    let json: JSON
    var description: String { "unknown command \(json.text)" }
}

extension JSON {
    /// Decodes a member of a command.
    fileprivate func member<Member: Decodable>(_ name: String, _: Member.Type = Member.self) throws -> Member {
        guard let member: Member = self[name].model() else { throw UnknownCommand(json: self) }
        return member
    }

    /// An id, which may be a number.
    fileprivate var id: String? { string ?? int.map(String.init) }

    fileprivate var command: String { self["type"].string ?? "" }
}

extension Never: VectorCommand {
    init(_ json: JSON) throws { throw UnknownCommand(json: json) }
}

extension BookingCommand: VectorCommand {
    init(_ json: JSON) throws {
        switch json.command {
        case "change": self = .change(set: json["set"])
        default: throw UnknownCommand(json: json)
        }
    }
}

extension ConversationCommand: VectorCommand {
    init(_ json: JSON) throws {
        switch json.command {
        case "send": self = .send(id: try json.member("id"), text: try json.member("text"))
        case "retry": self = .retry(id: try json.member("id"))
        case "discard": self = .discard(id: try json.member("id"))
        case "delete": self = .delete(id: try json.member("id"))
        case "read": self = .read(sequence: json["sequence"].int)
        case "earlier": self = .earlier
        default: throw UnknownCommand(json: json)
        }
    }
}

extension ConversationsCommand: VectorCommand {
    init(_ json: JSON) throws {
        switch json.command {
        case "more": self = .more
        default: throw UnknownCommand(json: json)
        }
    }
}

extension CountsCommand: VectorCommand {
    init(_ json: JSON) throws {
        switch json.command {
        case "expect": self = .expect(as: try json.member("as"), by: try json.member("by"))
        default: throw UnknownCommand(json: json)
        }
    }
}

extension DJCommand: VectorCommand {
    init(_ json: JSON) throws {
        switch json.command {
        case "vote": self = .vote(trackId: try json.member("trackId"), vote: try json.member("vote"))
        case "add": self = .add(track: try json.member("track"))
        default: throw UnknownCommand(json: json)
        }
    }
}

extension FeedCommand: VectorCommand {
    init(_ json: JSON) throws {
        switch json.command {
        case "more": self = .more
        case "showNew": self = .showNew
        case "engage": self = .engage(postId: try json.member("postId"), set: try json.member("set"))
        default: throw UnknownCommand(json: json)
        }
    }
}

extension InvalidationCommand: VectorCommand {
    init(_ json: JSON) throws {
        switch json.command {
        case "mutated":
            guard let id = json["recordId"].id else { throw UnknownCommand(json: json) }
            self = .mutated(table: try json.member("table"), recordId: id)
        case "watch-query":
            let isVisible = json["isVisible"].bool ?? true
            self = .watchQuery(id: try json.member("id"), key: try json.member("key"), isVisible: isVisible)
        case "unwatch-query": self = .unwatchQuery(id: try json.member("id"))
        case "refetch": self = .refetch(key: json["key"].strings)
        default: throw UnknownCommand(json: json)
        }
    }
}

extension NotificationsCommand: VectorCommand {
    init(_ json: JSON) throws {
        switch json.command {
        case "more": self = .more
        case "change": self = .change(id: try json.member("id"), set: try json.member("set"))
        case "changeAll":
            let (upTo, category) = (json["upTo"].string, json["category"].string)
            self = .changeAll(upTo: upTo, category: category, set: try json.member("set"))
        case "remove": self = .remove(id: try json.member("id"))
        case "prefer": self = .prefer(set: json["set"])
        default: throw UnknownCommand(json: json)
        }
    }
}

extension PushCommand: VectorCommand {
    init(_ json: JSON) throws {
        switch json.command {
        case "device": self = .device(id: try json.member("id"))
        case "status": self = .status(status: try json.member("status"))
        case "register": self = .register(draft: json["draft"])
        case "unregister": self = .unregister
        case "message": self = .message(payload: json["payload"])
        default: throw UnknownCommand(json: json)
        }
    }
}

extension RequestsCommand: VectorCommand {
    init(_ json: JSON) throws {
        switch json.command {
        case "more": self = .more
        case "settle": self = .settle(id: try json.member("id"), status: json["status"].model())
        case "see": self = .see
        case "ask": self = .ask(draft: try json.member("draft"))
        default: throw UnknownCommand(json: json)
        }
    }
}

extension RowsCommand: VectorCommand {
    init(_ json: JSON) throws {
        switch json.command {
        case "apply": self = .apply(row: json["row"])
        case "load": self = .load(rows: try json.member("rows"))
        default: throw UnknownCommand(json: json)
        }
    }
}

extension VisibleRowsCommand: VectorCommand {
    init(_ json: JSON) throws {
        switch json.command {
        case "apply": self = .apply(row: json["row"])
        case "show": self = .show(ids: json["ids"].array?.compactMap(\.id) ?? [])
        case "pause": self = .pause
        case "resume": self = .resume
        case "stop": self = .stop
        default: throw UnknownCommand(json: json)
        }
    }
}

import Database
import TestSupport
import Testing
import Values

@testable import Service

/// A simulation of three users with two devices each and a backend, which perform every possible operation in two
/// conversations. A model predicts the results.
///
/// Each device has its own connection, so that the test waits for the service and not for a client.
final class ConversationDevices {
    /// An operation, and the differences of its answer and of the stored rows from the model.
    struct Step {
        let what: String
        var differences: [String]
    }

    private enum Actor {
        case user(String)
        case service

        var name: String {
            switch self {
            case .user(let name): name
            case .service: "backend"
            }
        }
    }

    private struct Device {
        let connection: RawConnection
        let token: String
    }

    private static let users = ["ana", "ben", "cem"]
    private static let ids = ["c1", "c2"]
    private static let devicesOfUser = 2

    private let service: TestService
    private var devices: [String: [Device]] = [:]
    private var model = ConversationModel(ids, members: users)
    private var sent = 0
    private var random: SeededGenerator

    init(seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        service = try TestService.start(at: TestService.morning)
        for user in Self.users + ["backend"] {
            let token = service.token(for: user == "backend" ? .service() : .user(user))
            devices[user] = try (0..<Self.devicesOfUser).map { _ in
                Device(connection: try RawConnection(service.port), token: token)
            }
        }
        for id in Self.ids {
            let made = try ask(
                "POST", "/v1/conversations", as: .service, #"{"id":"\#(id)","memberIds":["ana","ben","cem"]}"#)
            #expect(made.status == 201)
        }
    }

    // MARK: Requests

    private func ask(
        _ method: String, _ path: String, as actor: Actor, _ body: String? = nil
    ) throws -> (status: Int, json: JSONValue) {
        // Each request has its own timestamp, as with a real clock.
        service.clock.set(Timestamp(microseconds: service.clock.now.microseconds + 1000))
        let device = try #require(devices[actor.name]?.randomElement(using: &random))
        var request = "\(method) \(path) HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(device.token)\r\n"
        if let body { request += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n" }
        try device.connection.send(request + "\r\n" + (body ?? ""))
        let answer = try device.connection.readAnswer()
        return (answer.status, try JSONValue(parsing: answer.body))
    }

    /// Sends a request. Compares the status and the counts of the answer with the model, which already contains the
    /// change.
    private func expect(
        _ status: Int, _ method: String, _ path: String, as actor: Actor, _ body: String? = nil,
        counts: [String: Int?] = [:]
    ) throws -> (step: Step, json: JSONValue) {
        let (found, json) = try ask(method, path, as: actor, body)
        var step = Step(
            what: "\(method) \(path) \(body ?? "") of \(actor.name): \(found)",
            differences: found == status ? [] : ["the status is \(found), and must be \(status)"])
        guard found < 300 else { return (step, json) }
        for (name, wanted) in counts where json[name].number != wanted {
            step.differences.append("\(name) is \(json[name]), and must be \(wanted.map { "\($0)" } ?? "null")")
        }
        if case .object = json["badges"] {
            let (messages, version) = (json["badges"]["messages"].number, json["badges"]["version"].number)
            if messages != model.messages(of: actor.name) || version != model.version(of: actor.name) {
                step.differences.append("the badges are \(json["badges"])")
            }
        }
        return (step, json)
    }

    // MARK: Steps

    /// Performs one operation and recounts everything afterwards.
    func step() throws -> Step {
        let user = Self.users.randomElement(using: &random) ?? ""
        let id = Self.ids.randomElement(using: &random) ?? ""
        var step =
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<6: try send(in: id, as: .user(user))
            case 6: try send(in: id, as: .service)
            case 7: try sendAgain(in: id, as: Bool.random(using: &random) ? .service : .user(user))
            case 8..<11:
                try delete(in: id, as: Int.random(in: 0..<3, using: &random) == 0 ? .service : .user(user))
            case 11, 12: try leave(id, as: .user(user))
            case 13..<15: try join(id, as: Int.random(in: 0..<3, using: &random) == 0 ? .user(user) : .service)
            default: try read(id, as: user)
            }
        step.differences += try service.app.store.read { try model.drift(in: $0) }
        return step
    }

    func audit() throws -> [String] { try service.audit() }

    private func isIn(_ room: ConversationModel.Room, _ actor: Actor) -> Bool {
        if case .user(let name) = actor { room.places[name] != nil } else { true }
    }

    private func send(in id: String, as actor: Actor) throws -> Step {
        sent += 1
        let messageId = "m\(sent)"
        let isAllowed = isIn(model.room(id), actor)
        if isAllowed { model.change(id) { $0.messages.append(.init(id: messageId, sender: actor.name)) } }
        let step = try expect(
            isAllowed ? 201 : 404, "POST", "/v1/conversations/\(id)/messages", as: actor,
            #"{"id":"\#(messageId)","text":"text \#(sent)"}"#,
            counts: ["unread": model.room(id).unread(of: actor.name)])
        return checked(step, sequence: model.room(id).messages.count)
    }

    /// Repeats a request whose answer was lost, or reuses its id as another sender.
    private func sendAgain(in id: String, as actor: Actor) throws -> Step {
        let room = model.room(id)
        guard let index = room.messages.indices.randomElement(using: &random) else {
            return Step(what: "nothing", differences: [])
        }
        let known = room.messages[index]
        let status = !isIn(room, actor) ? 404 : known.sender == actor.name ? 200 : 409
        let step = try expect(
            status, "POST", "/v1/conversations/\(id)/messages", as: actor, #"{"id":"\#(known.id)","text":"again"}"#,
            counts: ["unread": room.unread(of: actor.name)])
        return checked(step, sequence: index + 1)
    }

    private func checked(_ answer: (step: Step, json: JSONValue), sequence: Int) -> Step {
        var step = answer.step
        if case .object = answer.json["message"], answer.json["message"]["sequence"].number != sequence {
            step.differences.append("the message is \(answer.json["message"]), and its number must be \(sequence)")
        }
        return step
    }

    private func delete(in id: String, as actor: Actor) throws -> Step {
        let room = model.room(id)
        guard let index = room.messages.indices.randomElement(using: &random) else {
            return Step(what: "nothing", differences: [])
        }
        let message = room.messages[index]
        let status =
            switch actor {
            case .service: 200
            case .user where !isIn(room, actor): 404
            case .user(let name): message.isDeleted || message.sender == name ? 200 : 403
            }
        if status == 200 { model.change(id) { $0.messages[index].isDeleted = true } }
        return try expect(status, "DELETE", "/v1/conversations/\(id)/messages/\(message.id)", as: actor).step
    }

    /// Usually removes the actor itself; a member cannot remove another.
    private func leave(_ id: String, as actor: Actor) throws -> Step {
        let other = Self.users.randomElement(using: &random) ?? ""
        let (actor, user): (Actor, String) =
            switch Int.random(in: 0..<4, using: &random) {
            case 0: (actor, other)
            case 1: (.service, other)
            default: (actor, actor.name)
            }
        let room = model.room(id)
        let mayRemove = if case .service = actor { true } else { user == actor.name }
        let status =
            !isIn(room, actor) || room.places[user] == nil ? 404 : mayRemove ? 200 : 403
        if status == 200 { model.change(id) { $0.places[user] = nil } }
        return try expect(status, "DELETE", "/v1/conversations/\(id)/members/\(user)", as: actor).step
    }

    private func join(_ id: String, as actor: Actor) throws -> Step {
        let user = Self.users.randomElement(using: &random) ?? ""
        let isAllowed = isIn(model.room(id), actor)
        if isAllowed {
            model.change(id) { room in
                let last = room.messages.count
                if room.places[user] == nil { room.places[user] = .init(joined: last, position: last) }
            }
        }
        let room = model.room(id)
        return try expect(
            isAllowed ? 200 : 404, "PUT", "/v1/conversations/\(id)/members/\(user)", as: actor,
            counts: [
                "memberCount": room.places.count, "lastSequence": room.messages.count,
                "readPosition": room.places[actor.name]?.position, "unread": room.unread(of: actor.name),
            ]
        ).step
    }

    private func read(_ id: String, as user: String) throws -> Step {
        let isBack = Int.random(in: 0..<3, using: &random) == 0
        let last = model.room(id).messages.count
        let sequence =
            switch Int.random(in: 0..<8, using: &random) {
            case 0..<4: last
            case 4: last + 1
            default: Int.random(in: 0...last, using: &random)
            }
        let isThere = model.room(id).places[user] != nil
        let status = !isThere ? 404 : sequence > last ? 422 : 200
        if status == 200 {
            model.change(id) { room in
                guard var place = room.places[user] else { return }
                let wanted = max(sequence, place.joined)
                place.position = isBack ? wanted : max(wanted, place.position)
                room.places[user] = place
            }
        }
        let room = model.room(id)
        return try expect(
            status, "PUT", "/v1/conversations/\(id)/read-position", as: .user(user),
            #"{"sequence":\#(sequence),"allowRewind":\#(isBack)}"#,
            counts: ["readPosition": room.places[user]?.position, "unread": room.unread(of: user)]
        ).step
    }
}

/// Avoids the client's own JSON type, whose parser takes longer than the service takes to answer.
extension JSONValue {
    /// Returns a member of an object, or null.
    fileprivate subscript(_ name: String) -> JSONValue {
        guard case .object(let members) = self else { return .null }
        return members[name] ?? .null
    }

    fileprivate var number: Int? { if case .integer(let number) = self { Int(number) } else { nil } }
}

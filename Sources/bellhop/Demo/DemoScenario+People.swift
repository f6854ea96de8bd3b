import BellhopCalls
import Foundation

/// The part of the demo in which people exchange messages and requests.
extension DemoScenario {
    private static let pairs = [("ada", "ben"), ("ada", "chidi"), ("dana", "elif"), ("femi", "grace"), ("ines", "jun")]
    private static let group = ["ada", "ben", "dana", "hugo"]
    private static let words = [
        "See you at nine.", "Are you at the shop?", "Cleo is quick today.", "Which cut did you take?",
        "I am ten minutes late.", "Vote for my song!", "That looks great.", "Coffee afterwards?",
    ]

    /// Opens a conversation for each pair, and one for a group of four.
    func meet() async throws {
        for (one, other) in DemoScenario.pairs {
            try await talk(["kind": "direct", "memberIds": [.string(other)]], of: [one, other])
        }
        let others = DemoScenario.group.dropFirst().map { JSON.string($0) }
        // Equal on every run, so that an existing conversation is reused.
        let saturday: JSON = [
            "id": "5a7d0e3c-1b2f-4c6a-9d8e-7f0a1b2c3d4e", "memberIds": .array(others), "title": "Saturday",
        ]
        try await talk(saturday, of: DemoScenario.group)
        say(
            "\(conversations.count) conversations are open, one of them with \(DemoScenario.group.joined(separator: ", "))."
        )
    }

    /// Opens a conversation as its first member; an existing one is reused.
    private func talk(_ body: JSON, of members: [String]) async throws {
        let what = "open a conversation of \(members.joined(separator: ", "))"
        let answer = try await expect(user(members[0]).post("/v1/conversations", body), what)
        guard let id = answer.json["id"].string else { return }
        conversations.append((id, members))
    }

    func write() async throws {
        guard !conversations.isEmpty else { return }
        let (id, members) = pick(conversations)
        let (sender, text) = (pick(members), pick(DemoScenario.words))
        let answer = try await user(sender).post("/v1/conversations/\(id)/messages", ["text": .string(text)])
        try expect(answer, "write as \(sender)")
        let others = members.filter { $0 != sender }.joined(separator: ", ")
        say("\(sender) writes to \(others): \(text)")
    }

    /// A user reads messages on a second device, which marks them as read on all devices.
    func readOnSecondDevice() async throws {
        let reader = pick(conversations.flatMap(\.members))
        let page = try await user(reader).get("/v1/conversations?unread=true&limit=1")
        let conversation = try expect(page, "list \(reader)'s conversations").json["items"][0]
        guard let id = conversation["id"].string, let last = conversation["lastSequence"].int else {
            return try await write()
        }
        let place: JSON = ["sequence": .integer(Int64(last))]
        let answer = try await secondDeviceOf(reader).put("/v1/conversations/\(id)/read-position", place)
        let unread = try expect(answer, "read as \(reader)").json["badges"]["messages"].int ?? 0
        say(
            "On a second device, \(reader) reads \(conversation["unread"].int ?? 0) messages; \(unread) unread messages remain."
        )
    }

    func askToBeFriends() async throws {
        let asker = pick(DemoScenario.customers)
        let asked = pick(DemoScenario.customers.filter { $0 != asker })
        let body: JSON = ["kind": "friend", "toUserId": .string(asked), "fromName": .string(asker.capitalized)]
        let answer = try expect(await user(asker).post("/v1/requests", body), "ask \(asked) as \(asker)")
        say(
            answer.status == 200
                ? "\(asker) is still waiting for an answer from \(asked)." : "\(asker) sends \(asked) a friend request."
        )
    }

    func answerRequest() async throws {
        // Starts at a random customer, so that the answers come from different people.
        let first = number(in: 0...DemoScenario.customers.count - 1)
        for asked in DemoScenario.customers[first...] + DemoScenario.customers[..<first] {
            let page = try await user(asked).get("/v1/requests?direction=incoming&status=open&limit=1")
            let request = try expect(page, "list \(asked)'s requests").json["items"][0]
            guard let id = request["id"].string, let asker = request["fromUserId"].string else { continue }
            let status = pick(["accepted", "accepted", "accepted", "declined"])
            let answer = try await user(asked).patch("/v1/requests/\(id)", ["status": .string(status)])
            // It was answered or withdrawn meanwhile.
            guard answer.status != 404, answer.status != 409 else { return }
            try expect(answer, "answer \(asker) as \(asked)")
            return say("\(asked) has \(status) the request of \(asker).")
        }
        try await askToBeFriends()
    }
}

import BellhopCalls
import Foundation

/// The part of the demo with the shop's music, which the guests choose, and the points they win.
extension DemoScenario {
    static let challenge = "demo-regulars"
    private static let songs = [
        ("so-what", "So What", "Miles Davis"), ("blue-train", "Blue Train", "John Coltrane"),
        ("take-five", "Take Five", "Dave Brubeck"), ("feeling-good", "Feeling Good", "Nina Simone"),
        ("at-last", "At Last", "Etta James"), ("lovely-day", "Lovely Day", "Bill Withers"),
        ("superstition", "Superstition", "Stevie Wonder"), ("september", "September", "Earth, Wind & Fire"),
        ("jolene", "Jolene", "Dolly Parton"), ("heroes", "Heroes", "David Bowie"),
        ("dreams", "Dreams", "Fleetwood Mac"), ("one-more-time", "One More Time", "Daft Punk"),
    ]
    /// The length of the queue from which guests vote instead of adding tracks.
    private static let queueWanted = 5

    func openMusic() async throws {
        try await expect(staff.put("/v1/shops/\(Self.shop)/dj", ["isActive": true]), "let guests choose the music")
        say("Guests can now choose the music.")
    }

    /// Lets a guest of the shop add a track, or vote on one of the queue.
    func chooseMusic() async throws {
        let guest = pick(DemoScenario.customers)
        try await expect(user(guest).put("/v1/shops/\(DemoScenario.shop)/presence/me"), "be at the shop as \(guest)")
        let session = try expect(await user(guest).get("/v1/shops/\(DemoScenario.shop)/dj"), "read the queue").json
        let playing = session["currentTrack"]["trackId"].string
        let coming = (session["queue"].array ?? []).filter { $0["trackId"].string != playing }
        guard coming.count >= DemoScenario.queueWanted || (coming.count > 1 && pick([true, true, false])) else {
            return try await addTrack(as: guest)
        }
        let track = pick(coming)
        guard let id = track["trackId"].string else { return }
        let vote = pick(["up", "up", "down", "none"])
        let path = "/v1/shops/\(DemoScenario.shop)/dj/tracks/\(id)/vote"
        let answer = try await user(guest).put(path, ["vote": .string(vote)])
        // The track was played meanwhile.
        guard answer.status != 404, answer.status != 409 else { return }
        let score = try expect(answer, "vote as \(guest)").json
        let words = vote == "none" ? "withdraws a vote for" : "votes \(vote)"
        let place = "position \(score["position"].int ?? 0), score \(score["score"].int ?? 0)"
        say("\(guest) \(words) \(track["trackName"].string ?? id): \(place).")
    }

    private func addTrack(as guest: String) async throws {
        let (id, name, artist) = pick(DemoScenario.songs)
        let body: JSON = ["trackId": .string(id), "trackName": .string(name), "artistName": .string(artist)]
        let answer = try await user(guest).post("/v1/shops/\(DemoScenario.shop)/dj/tracks", body)
        // The queue, or the guest's share of it, is full.
        guard answer.status != 409 else { return say("\(guest) cannot add another song yet.") }
        try expect(answer, "add \(name) as \(guest)")
        say(answer.status == 200 ? "\(guest) also votes for \(name)." : "\(guest) adds \(name) by \(artist).")
    }

    func playNext() async throws {
        let answer = try await staff.post("/v1/shops/\(DemoScenario.shop)/dj/current-track")
        guard answer.status != 409 else { return try await chooseMusic() }
        let session = try expect(answer, "play the next track").json
        say("Now playing: \(session["currentTrack"]["trackName"].string ?? "nothing").")
    }

    /// Opens a challenge for a month of points, starting at midnight.
    func openChallenge() async throws {
        let day = 86_400.0
        let midnight = Date(timeIntervalSince1970: (Date().timeIntervalSince1970 / day).rounded(.down) * day)
        let body: JSON = [
            "name": "Best regulars", "mode": "add", "startsAt": .string(midnight.ISO8601Format()),
            "endsAt": .string(midnight.addingTimeInterval(30 * day).ISO8601Format()),
        ]
        try await expect(backend.put("/v1/challenges/\(DemoScenario.challenge)", body), "open the challenge")
        say("A one-month points challenge for regular customers starts.")
    }

    func winPoints() async throws {
        let guest = pick(DemoScenario.customers)
        let points = number(in: 1...10) * 5
        let body: JSON = [
            "userId": .string(guest), "score": .integer(Int64(points)), "displayName": .string(guest.capitalized),
        ]
        let answer = try await backend.post(
            "/v1/challenges/\(DemoScenario.challenge)/scores", body, headers: ["Idempotency-Key": freshKey()])
        let place = try expect(answer, "give \(guest) points").json
        let rank = "rank \(place["rank"].int ?? 0) of \(place["entries"].int ?? 0) with \(place["score"].int ?? 0)"
        say("\(guest) wins \(points) points: \(rank).")
    }
}

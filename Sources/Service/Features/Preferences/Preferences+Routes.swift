import Domain
import MicroHTTP
import Values

extension PreferencesFeature {
    static let endpoints = [
        Endpoint(.get, "/v1/preferences", access: .bearer, show),
        Endpoint(.put, "/v1/preferences", access: .bearer, replace),
    ]

    private static func show(_ call: Call) throws -> Answer {
        return .query(query(of: call.caller)) { Response.json(200, try preferences(in: $0)) }
    }

    /// `PUT /v1/preferences`: replaces all of them; what is left out takes its default.
    private static func replace(_ call: Call) throws -> Answer {
        let wanted = try call.body { Preferences(reading: &$0, isTimeZone: TimeZones.isKnown) }
        return .write(locking: .user(call.caller.userId)) { tx in
            try store(wanted, tx)
            tx.record(PreferencesChanged(userId: tx.caller.userId, preferences: wanted))
            return Response.json(200, wanted)
        }
    }
}

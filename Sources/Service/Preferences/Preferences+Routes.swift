import Domain
import MicroHTTP

extension PreferencesFeature {
    static let endpoints = [
        Endpoint(.get, "/v1/preferences", access: .bearer, show),
        Endpoint(.put, "/v1/preferences", access: .bearer, replace),
    ]

    private static func show(_ call: Call) throws -> Answer {
        _ = try call.query([])
        return .query(query(of: call.caller)) { Response.json(200, JSONWriter.bytes(try preferences(in: $0))) }
    }

    /// `PUT /v1/preferences`: replaces all of them; what is left out takes its default.
    private static func replace(_ call: Call) throws -> Answer {
        _ = try call.query([])
        var fields = try call.fields()
        let wanted = Preferences(reading: &fields, isTimeZone: TimeZones.isKnown)
        try fields.finish()
        return .write(on: .user(call.caller.userId)) { tx in
            try store(wanted, tx)
            tx.record(PreferencesChanged(userId: tx.caller.userId, preferences: wanted))
            return Response.json(200, JSONWriter.bytes(wanted))
        }
    }
}

import MicroHTTP
import Values

/// Events that an app defines and publishes to its users, under its own names.
enum PublishFeature {
    typealias Parts = OwnEvent.Rules

    /// Creates the feature.
    ///
    /// - Parameter parts: Nil lists the route without serving it.
    static func feature(_ parts: Parts?) -> Feature {
        Feature(
            name: "publish", set: .publish,
            endpoints: [
                Endpoint(
                    .post, "/v1/publish", access: .service, needs: .publish, adds: true, countsCalls: true,
                    bodyBytesMax: PublishLimits.bodyBytesMax,
                    Endpoint.serving(parts, publish))
            ],
            constants: Feature.constants(
                "publish",
                [
                    "eventsMax": PublishLimits.eventsMax, "dataBytesMax": PublishLimits.dataBytesMax,
                    "keysMax": PublishLimits.keysMax,
                ]))
    }

    /// `POST /v1/publish`: one event, or several in order. 202 means that they are on disk and will be delivered.
    @Sendable private static func publish(_ call: Call, _ parts: Parts) throws -> Answer {
        let events = try read(call, parts)
        return .write { tx in
            for event in events { event.publish(tx) }
            return Response.json(202) { $0.member("accepted", events.count) }
        }
    }

    /// Accepts an event that was written in an app's own transaction, in the form of `POST /v1/publish`.
    static func accept(_ members: [String: JSONValue], by rules: OwnEvent.Rules, _ tx: Transaction) throws {
        try read(.object(members), at: "", rules).publish(tx)
    }

    private static func read(_ call: Call, _ rules: OwnEvent.Rules) throws -> [OwnEvent] {
        let body = try call.json()
        guard case .array(let items) = body else { return [try read(body, at: "", rules)] }
        guard (1...PublishLimits.eventsMax).contains(items.count) else {
            throw Failure.invalid("", "must have 1 to \(PublishLimits.eventsMax) events, but has \(items.count)")
        }
        var events: [OwnEvent] = []
        var mistakes: [Failure.Field] = []
        for (index, item) in items.enumerated() {
            do throws(Failure) { events.append(try read(item, at: "/\(index)", rules)) } catch {
                mistakes += error.fields
            }
        }
        // One mistake refuses all events, because they are one transaction.
        guard mistakes.isEmpty else { throw Failure.invalid(Array(mistakes.prefix(20))) }
        return events
    }

    private static func read(
        _ value: JSONValue, at pointer: String, _ rules: OwnEvent.Rules
    ) throws(Failure) -> OwnEvent {
        guard case .object(let members) = value else {
            throw Failure.invalid(pointer, "must be an object, not \(value.typeName)")
        }
        var fields = Fields(members, at: pointer)
        let event = OwnEvent(reading: &fields, by: rules)
        try fields.finish()
        return event
    }
}

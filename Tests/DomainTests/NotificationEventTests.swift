import Domain
import TestSupport
import Testing
import Values

/// R-VIS-FR-2.1 to R-VIS-FR-3.5, R-VIS-APPENDIX, R-VIS-FR-4.1, R-VIS-FR-5.1, R-VIS-NFR-4.1, R-VIS-D-2, R-8 and
/// R-17 to R-21: one row per event type, with the exact wording.
@Suite(.timed) struct NotificationEventTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let requirement: String
        let type: String
        let title: String
        let message: String
        let priority: String
        let kind: String
        let haptic: String
        let sound: Bool
        var seen = false
        var testDescription: String { "\(requirement) \(type)" }
    }

    static let urgent = #"{"notification":"error","impacts":["heavy","heavy"],"pulses":3}"#
    static let high = #"{"notification":"warning","impacts":[],"pulses":2}"#
    static let normal = #"{"notification":"success","impacts":[],"pulses":1}"#

    static let rows: [Row] = [
        Row(
            requirement: "R-VIS-FR-2.1", type: "visit.created", title: "Check-up Scheduled",
            message: "Your check-up at St. Mary is confirmed", priority: "HIGH", kind: "VISIT", haptic: high,
            sound: true),
        Row(
            requirement: "R-VIS-FR-2.2", type: "visit.updated", title: "Check-up Updated",
            message: "Your check-up details have been updated", priority: "NORMAL", kind: "VISIT", haptic: normal,
            sound: false),
        Row(
            requirement: "R-VIS-FR-2.3", type: "visit.cancelled", title: "Check-up Cancelled",
            message: "Your check-up at St. Mary has been cancelled", priority: "HIGH", kind: "VISIT", haptic: high,
            sound: true),
        Row(
            requirement: "R-VIS-FR-2.4", type: "visit.completed", title: "Check-up Completed",
            message: "Your check-up at St. Mary is complete", priority: "NORMAL", kind: "VISIT", haptic: normal,
            sound: false),
        Row(
            requirement: "R-VIS-FR-3.1", type: "auth.login", title: "Welcome back!",
            message: "You've successfully logged in",
            priority: "LOW", kind: "SYSTEM", haptic: "null", sound: false, seen: true),
        Row(
            requirement: "R-VIS-FR-3.2", type: "auth.signup", title: "Welcome to iVisit!",
            message: "Your account has been created successfully", priority: "NORMAL", kind: "SYSTEM", haptic: normal,
            sound: false),
        Row(
            requirement: "R-VIS-FR-3.3", type: "auth.password_changed", title: "Password Changed",
            message: "Your password has been updated successfully", priority: "HIGH", kind: "SYSTEM", haptic: high,
            sound: true),
        Row(
            requirement: "R-VIS-FR-3.4", type: "auth.profile_updated", title: "Profile Updated",
            message: "Your profile information has been updated", priority: "NORMAL", kind: "SYSTEM", haptic: normal,
            sound: false),
        Row(
            requirement: "R-VIS-FR-3.5", type: "auth.logout", title: "Signed Out",
            message: "You've been logged out successfully", priority: "LOW", kind: "SYSTEM", haptic: "null",
            sound: false, seen: true),
        Row(
            requirement: "R-VIS-APPENDIX", type: "emergency.accepted", title: "Help Is on the Way",
            message: "Your emergency request has been accepted", priority: "URGENT", kind: "EMERGENCY", haptic: urgent,
            sound: true),
        Row(
            requirement: "R-VIS-APPENDIX", type: "emergency.arriving", title: "Help Is Arriving",
            message: "The response to your emergency is arriving now", priority: "URGENT", kind: "EMERGENCY",
            haptic: urgent, sound: true),
        Row(
            requirement: "R-VIS-APPENDIX", type: "emergency.completed", title: "Emergency Completed",
            message: "Your emergency request is complete", priority: "HIGH", kind: "EMERGENCY", haptic: high,
            sound: true),
        Row(
            requirement: "R-VIS-APPENDIX", type: "emergency.cancelled", title: "Emergency Cancelled",
            message: "Your emergency request has been cancelled", priority: "NORMAL", kind: "EMERGENCY", haptic: normal,
            sound: false),
    ]

    static let visit = #"{"visitId":"v1","visitType":"Check-up","hospital":"St. Mary","status":"confirmed"}"#

    static func event(_ type: String, _ data: String = visit) throws(Failure) -> NotificationEvent {
        var fields = try Fields(Array(#"{"id":"e1","type":"\#(type)","userId":"u1","data":\#(data)}"#.utf8))
        let event = NotificationEvent(reading: &fields)
        try fields.finish()
        return event
    }

    static func draft(_ type: String, _ data: String = visit) throws -> NotificationDraft {
        try #require(try event(type, data).draft(appName: "iVisit"))
    }

    @Test("each event has its exact words, type, priority, haptic and sound", arguments: rows)
    func eventBecomesItsNotification(_ row: Row) throws {
        let draft = try Self.draft(row.type)
        #expect(draft.title == row.title)
        #expect(draft.message == row.message)
        #expect(draft.priority.rawValue == row.priority)
        #expect(draft.type.rawValue == row.kind)
        #expect(draft.category.rawValue == row.kind.lowercased())
        #expect(draft.eventId == "e1")
        #expect(draft.isSeen == row.seen, "R-17")
        #expect(draft.lockScreen == "You have a new update", "R-20")
        let haptic = String(decoding: JSONWriter.bytes(draft.priority.haptic), as: UTF8.self)
        #expect(haptic == row.haptic, "R-VIS-FR-4.1, R-21")
        let sounds = Preferences().delivery(of: draft.priority, atMinuteOfDay: 0).sounds
        #expect(sounds == row.sound, "R-VIS-FR-5.1, R-VIS-FR-5.2")
    }

    /// R-VIS-D-5: every event type has a row above.
    @Test func everyKind_hasItsRow() {
        #expect(Set(Self.rows.map(\.type)) == Set(NotificationEvent.Kind.allCases.map(\.rawValue)))
    }

    @Test(
        "R-19: unknown details are omitted",
        arguments: [
            (#"{}"#, "Visit Scheduled", "Your visit is scheduled"),
            (#"{"visitType":"Dental Cleaning"}"#, "Dental Cleaning Scheduled", "Your dental cleaning is scheduled"),
            (
                #"{"visitType":"Removal of Stitches"}"#, "Removal of Stitches Scheduled",
                "Your removal of stitches is scheduled"
            ),
            (#"{"visitType":"Follow-Up Visit"}"#, "Follow-Up Visit Scheduled", "Your follow-up visit is scheduled"),
            (#"{"visitType":"X-Ray"}"#, "X-Ray Scheduled", "Your X-ray is scheduled"),
            (#"{"visitType":"McKenzie Therapy"}"#, "McKenzie Therapy Scheduled", "Your McKenzie therapy is scheduled"),
            (
                #"{"visitType":"Follow-up for Ada"}"#, "Follow-up for Ada Scheduled",
                "Your follow-up for Ada is scheduled"
            ),
            (#"{"visitType":"HIV Test","status":"In Progress"}"#, "HIV Test Scheduled", "Your HIV test is in progress"),
            (#"{"hospital":"St. Mary","status":"open"}"#, "Visit Scheduled", "Your visit at St. Mary is open"),
            (#"{"visitType":"MRI scan","hospital":null}"#, "MRI scan Scheduled", "Your MRI scan is scheduled"),
            (#"{"visitType":"  ","hospital":" ","status":"Pending"}"#, "Visit Scheduled", "Your visit is pending"),
            (#"{"visitType":"Étude"}"#, "Étude Scheduled", "Your étude is scheduled"),
        ])
    func missingDetail_isLeftOut(_ data: String, _ title: String, _ message: String) throws {
        let draft = try Self.draft("visit.created", data)
        #expect(draft.title == title)
        #expect(draft.message == message)
    }

    @Test(
        "R-18: an update that ends the visit becomes its end",
        arguments: [
            (#"{"status":"cancelled"}"#, "Visit Cancelled"), (#"{"status":"Completed"}"#, "Visit Completed"),
            (#"{"status":"cancelled","changes":["status","hospital"]}"#, "Visit Cancelled"),
            (#"{"status":"cancelled","changes":["hospital"]}"#, "Visit Updated"),
            (#"{"status":"completed","previousStatus":"completed"}"#, "Visit Updated"),
            (#"{"status":"confirmed","changes":{"status":"confirmed"}}"#, "Visit Updated"),
        ])
    func updateWithAFinalStatus_endsTheVisit(_ data: String, _ title: String) throws {
        #expect(try Self.draft("visit.updated", data).title == title)
    }

    /// R-18.
    @Test(arguments: [#"{"changes":[]}"#, #"{"changes":{}}"#, #"{"status":"cancelled","changes":[]}"#])
    func emptyDifference_makesNoNotification(_ data: String) throws {
        #expect(try Self.event("visit.updated", data).draft(appName: "iVisit") == nil)
    }

    /// R-VIS-NFR-3.2.
    @Test func unknownData_isDropped() throws {
        let draft = try Self.draft(
            "visit.created", #"{"visitId":"v1","diagnosis":"secret","visitType":"Check-up","deep":{"er":["secret"]}}"#)
        #expect(draft.data == ["visitId": .string("v1")])
        #expect(!"\(draft)".contains("secret"))
    }

    @Test func appName_isConfigurable() throws {
        #expect(try Self.event("auth.signup").draft(appName: "Bellhop")?.title == "Welcome to Bellhop!")
        #expect(try Self.event("auth.signup").draft(appName: nil)?.title == "Welcome!")
    }

    @Test(arguments: [
        (#"{"type":"auth.login","userId":"u1"}"#, ["/id"]),
        (#"{"id":"","type":"auth.login","userId":"u1"}"#, ["/id"]),
        (#"{"id":"e","type":"auth.hello","userId":"u1"}"#, ["/type"]),
        (#"{"id":"e","type":"auth.login","userId":7}"#, ["/userId"]),
        (#"{"id":"e","type":"auth.login","userId":"u","data":[]}"#, ["/data"]),
        (#"{"id":"e","type":"auth.login","userId":"u","data":{"hospital":5}}"#, ["/data/hospital"]),
        (#"{"id":"e","type":"auth.login","userId":"u","data":{"status":"a\nb"}}"#, ["/data/status"]),
        (#"{"id":"e","type":"visit.updated","userId":"u","data":{"changes":"all"}}"#, ["/data/changes"]),
        (#"{"id":"e","type":"visit.updated","userId":"u","data":{"changes":[1]}}"#, ["/data/changes"]),
        (#"{"id":"e","type":"auth.login","userId":"u","extra":1}"#, ["/extra"]),
        (#"{}"#, ["/id", "/type", "/userId"]),
    ])
    func badMember_isNamedByItsPointer(_ body: String, _ pointers: [String]) throws {
        let failure = #expect(throws: Failure.self) {
            var fields = try Fields(Array(body.utf8))
            _ = NotificationEvent(reading: &fields)
            try fields.finish()
        }
        #expect(failure?.kind == .invalid)
        #expect(failure?.fields.map(\.pointer) == pointers)
    }

    @Test func overlongDetail_isRefused() throws {
        let long = String(repeating: "x", count: 121)
        #expect(throws: Failure.self) { try Self.event("visit.created", #"{"hospital":"\#(long)"}"#) }
    }
}

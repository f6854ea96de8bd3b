import TestSupport
import Testing

@testable import Domain
@testable import Values

/// The permitted changes to a booking, by actor and status, and the notifications that its customer receives (R-1 and
/// R-8).
@Suite(.timed) struct BookingChangeTests {
    private static let nine = Timestamp(microseconds: 1_767_949_200_000_000)

    private static func booking(_ status: BookingStatus, user: String? = "u1") -> Booking {
        Booking(
            id: ID("b"), userId: user.map { ID($0) }, shopId: ID("s"), barberId: ID("b1"), service: "cut",
            scheduledStart: nine, durationMinutes: 30, tier: .standard, status: status, source: .online,
            customerName: nil, createdAt: nine, updatedAt: nine)
    }

    private static func change(_ json: String) throws -> BookingChange {
        var fields = try Fields(Array(json.utf8))
        let change = BookingChange(reading: &fields)
        try fields.finish()
        return change
    }

    private static func outcome(_ json: String, of booking: Booking, by actor: BookingActor) throws -> String {
        let change = try change(json)
        do {
            return try change.applied(to: booking, by: actor, at: nine) == booking ? "same" : "changed"
        } catch {
            return error.code
        }
    }

    /// The customer may change the time while the booking is pending; the shop may change it until the booking ends.
    @Test(arguments: BookingStatus.allCases)
    func time_isChanged_whileItCanBe(_ status: BookingStatus) throws {
        let expected: (customer: String, staff: String) =
            switch status {
            case .pending: ("changed", "changed")
            case .confirmed: ("booking.staff_only", "changed")
            case .inProgress: ("booking.not_changeable", "changed")
            case .completed, .cancelled, .noShow: ("booking.not_changeable", "booking.not_changeable")
            }
        let booking = Self.booking(status)
        for json in [
            #"{"durationMinutes": 45}"#, #"{"barberId": null}"#, #"{"scheduledStart": "2026-01-10T09:30:00Z"}"#,
        ] {
            #expect(try Self.outcome(json, of: booking, by: .customer) == expected.customer, "\(json)")
            #expect(try Self.outcome(json, of: booking, by: .staff) == expected.staff, "\(json)")
        }
        // Any actor may request a change to the current values, in every status.
        for actor in BookingActor.allCases {
            #expect(try Self.outcome(#"{"durationMinutes": 30, "barberId": "b1"}"#, of: booking, by: actor) == "same")
        }
    }

    @Test(arguments: BookingStatus.allCases)
    func arrival_isRecordedByStaff_once_whileTheBookingIsActive(_ status: BookingStatus) throws {
        let booking = Self.booking(status)
        let arrived = #"{"arrived": true}"#
        #expect(try Self.outcome(arrived, of: booking, by: .customer) == "booking.staff_only")
        let expected = status.isActive ? "changed" : "booking.not_changeable"
        #expect(try Self.outcome(arrived, of: booking, by: .staff) == expected)
        var there = booking
        there.arrivedAt = Self.nine.adding(minutes: -5)
        #expect(try Self.outcome(arrived, of: there, by: .staff) == "same")
    }

    @Test(arguments: [
        ("{}", ""), (#"{"arrived": false}"#, "/arrived"), (#"{"durationMinutes": 481}"#, "/durationMinutes"),
        (#"{"durationMinutes": 4}"#, "/durationMinutes"), (#"{"status": "done"}"#, "/status"),
        (#"{"scheduledStart": "nine"}"#, "/scheduledStart"), (#"{"tier": "blackCard"}"#, "/tier"),
    ])
    func badChanges_nameTheirMistake(_ json: String, _ pointer: String) throws {
        let failure = try #require(throws: Failure.self) { try Self.change(json) }
        #expect(failure.fields.map(\.pointer) == [pointer])
    }

    /// R-CUT-B-2, R-8.
    @Test func everyStatus_hasItsText() throws {
        let texts: [BookingStatus: (String, String, Priority)] = [
            .pending: ("Booking Requested", "Your cut at The Cut Club is waiting for confirmation", .low),
            .confirmed: ("Booking Confirmed", "Your cut at The Cut Club is confirmed", .high),
            .inProgress: ("It's Your Turn", "Your cut at The Cut Club has started", .normal),
            .completed: ("Booking Completed", "Your cut at The Cut Club is complete", .normal),
            .cancelled: ("Booking Cancelled", "Your cut at The Cut Club has been cancelled", .high),
            .noShow: ("Booking Missed", "Your cut at The Cut Club was missed", .normal),
        ]
        for status in BookingStatus.allCases {
            let draft = try #require(
                BookingNotification.draft(
                    Self.booking(status), previous: nil, shopName: "The Cut Club", byCustomer: false))
            let expected = try #require(texts[status])
            #expect((draft.title, draft.message, draft.priority) == expected)
            #expect(draft.category == .booking)
            #expect(draft.eventId == "booking:b:1")
            #expect(!draft.isSeen)
        }
        let anonymous = Self.booking(.confirmed, user: nil)
        #expect(BookingNotification.draft(anonymous, previous: nil, shopName: "The Cut Club", byCustomer: false) == nil)
    }

    /// Times are half-open: one booking may begin when another ends. Bookings in the queue or without a barber
    /// reserve no time.
    @Test(arguments: BookingStatus.allCases)
    func activeBookings_occupyTheirBarbersTime(_ status: BookingStatus) {
        var booking = Self.booking(status)
        #expect(booking.isReserving == [.pending, .confirmed, .inProgress].contains(status))
        #expect(booking.endsAt == Self.nine.adding(minutes: 30))
        booking.barberId = nil
        #expect(!booking.isReserving)
    }
}

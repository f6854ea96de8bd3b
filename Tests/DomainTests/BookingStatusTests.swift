import TestSupport
import Testing

@testable import Domain
@testable import Values

/// R-1, R-CUT-B-1: all 36 transitions, for both actors.
@Suite(.timed) struct BookingStatusTests {
    private static let moves: [BookingStatus: Set<BookingStatus>] = [
        .pending: [.confirmed, .cancelled], .confirmed: [.inProgress, .cancelled, .noShow],
        .inProgress: [.completed, .cancelled],
    ]

    @Test(arguments: BookingStatus.allCases, BookingStatus.allCases)
    func everyTransition_isKnownOrRefused(_ from: BookingStatus, _ to: BookingStatus) {
        for actor in BookingActor.allCases {
            let isKnown = Self.moves[from]?.contains(to) == true
            let isAllowed = isKnown && (actor == .staff || (to == .cancelled && from != .inProgress))
            do {
                try BookingMoves.check(from: from, to: to, by: actor)
                #expect(isAllowed, "\(actor): \(from) → \(to)")
            } catch {
                #expect(!isAllowed, "\(actor): \(from) → \(to)")
                #expect(error.code == (isKnown ? "booking.staff_only" : "booking.invalid_transition"))
            }
        }
    }

    /// R-CUT-B-3.
    @Test func estimatedCompletion_followsTheStart() {
        let nine = Timestamp(microseconds: 1_767_949_200_000_000)
        var booking = Booking(
            id: ID("b"), userId: nil, shopId: ID("s"), barberId: nil, service: "cut", scheduledStart: nine,
            durationMinutes: 30, tier: .standard, status: .confirmed, source: .online, customerName: nil,
            createdAt: nine, updatedAt: nine)
        #expect(booking.estimatedCompletion(medianMinutes: 25) == nine.adding(minutes: 25))
        booking.move(to: .inProgress, at: nine.adding(minutes: 7))
        #expect(booking.estimatedCompletion(medianMinutes: 25) == nine.adding(minutes: 32))
        booking.move(to: .completed, at: nine.adding(minutes: 30))
        #expect(booking.estimatedCompletion(medianMinutes: 25) == nine.adding(minutes: 30))
        booking.move(to: .cancelled, at: nine)
        #expect(booking.estimatedCompletion(medianMinutes: 25) == nil)
    }
}

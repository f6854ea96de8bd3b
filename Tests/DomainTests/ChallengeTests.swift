import TestSupport
import Testing

@testable import Domain
@testable import Values

/// How a score is computed, and which submissions a challenge refuses (R-CUT-L-1).
@Suite(.timed) struct ChallengeTests {
    private static func challenge(_ mode: Challenge.Mode, _ order: Challenge.Order = .descending) -> Challenge {
        Challenge(
            id: ID("c1"), name: "c", shopId: nil, startsAt: Timestamp(microseconds: 100),
            endsAt: Timestamp(microseconds: 200), mode: mode, order: order, createdAt: Timestamp(microseconds: 0),
            updatedAt: Timestamp(microseconds: 0))
    }

    @Test func scores_areAdded_orTheBestStays() throws {
        let (add, high, low) = (Self.challenge(.add), Self.challenge(.best), Self.challenge(.best, .ascending))
        #expect(try add.score(5, after: nil) == 5)
        #expect(try add.score(5, after: -7) == -2)
        #expect(try high.score(5, after: 7) == 7)
        #expect(try high.score(9, after: 7) == 9)
        #expect(try low.score(5, after: 7) == 5)
        #expect(try low.score(9, after: 7) == 7)
    }

    @Test func sumBeyond64Bits_isRefused() throws {
        let challenge = Self.challenge(.add)
        for (score, present) in [(Int64.max, Int64(1)), (1, .max), (.min, -1), (-1, .min)] {
            #expect(throws: Failure.self) { try challenge.score(score, after: present) }
        }
        #expect(try challenge.score(.max, after: .min) == -1)
        // In best mode nothing is added, so nothing can overflow.
        #expect(try Self.challenge(.best).score(.max, after: .max) == .max)
    }

    @Test func keys_orderLikeScores_toTheEdges() {
        let scores: [Int64] = [.min, -1, 0, 1, .max]
        for order in Challenge.Order.allCases {
            let keys = scores.map { order.key(of: $0) }
            #expect(keys == (order == .ascending ? keys.sorted() : keys.sorted().reversed()))
            #expect(scores.map { order.score(of: order.key(of: $0)) } == scores)
        }
    }

    @Test func scores_countFromTheStart_toBeforeTheEnd() {
        func code(_ moment: Int64) -> String? {
            do throws(Failure) {
                try Self.challenge(.add).requireRunning(at: Timestamp(microseconds: moment))
                return nil
            } catch {
                return error.code
            }
        }
        #expect([99, 100, 199, 200].map(code) == ["challenge.not_started", nil, nil, "challenge.ended"])
    }

    @Test func rules_cannotChangeOnceScoresExist() throws {
        func wish(_ mode: String, _ order: String) throws -> ChallengeDraft {
            var fields = Fields([
                "name": .string("c"), "startsAt": .string("2026-01-01T00:00:00Z"),
                "endsAt": .string("2026-02-01T00:00:00Z"), "mode": .string(mode), "order": .string(order),
            ])
            defer { #expect(throws: Never.self) { try fields.finish() } }
            return ChallengeDraft(reading: &fields)
        }
        let (known, now) = (Self.challenge(.add), Timestamp(microseconds: 1))
        for (mode, order) in [("best", "descending"), ("add", "ascending")] {
            let wish = try wish(mode, order)
            #expect(throws: Failure.self) { try wish.challenge(known.id, replacing: known, hasScores: true, at: now) }
            let changed = try wish.challenge(known.id, replacing: known, hasScores: false, at: now)
            #expect(changed.mode.rawValue == mode)
            #expect(changed.order.rawValue == order)
        }
        let same = try wish("add", "descending")
        #expect(try same.challenge(known.id, replacing: known, hasScores: true, at: now).createdAt == known.createdAt)
    }

    @Test func drafts_reportEveryMistake() {
        var fields = Fields([
            "name": .string(""), "startsAt": .string("2026-02-01T00:00:00Z"),
            "endsAt": .string("2026-02-01T00:00:00Z"), "mode": .string("most"), "points": .integer(1),
        ])
        _ = ChallengeDraft(reading: &fields)
        let error = #expect(throws: Failure.self) { try fields.finish() }
        #expect(error?.fields.map(\.pointer) == ["/name", "/mode", "/endsAt", "/points"])
    }
}

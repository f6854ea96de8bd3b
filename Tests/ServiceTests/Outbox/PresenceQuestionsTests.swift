import TestSupport
import Testing
import Values

@testable import Service

/// The rules by which replicas ask one another who has a stream, without a database.
@Suite(.timed) struct PresenceQuestionsTests {
    private static func lane(_ id: Int, _ user: ID<User>? = "ada", isPaused: Bool = false) -> Outbox.Due {
        Outbox.Due(
            id: id, tenant: "t", owner: user.map { Owner(tenant: "t", userId: $0) }, isEarly: true, isPaused: isPaused)
    }

    /// The steps after a question about the lanes 1 and 2 at the second 10, and what is settled by them.
    struct Case: Sendable, CustomTestStringConvertible {
        enum Step: Sendable {
            case count(Int, at: Int = 10)
            case answer(String, present: [Int] = [], to: String = "q")
            case forget(before: Int)
        }

        let testDescription: String
        let steps: [Step]
        var present: [Int] = []
        var absent: [Int] = []
        var isForgotten = false
    }

    private static let cases: [Case] = [
        Case(testDescription: "no replica was counted", steps: [.answer("a")]),
        Case(testDescription: "no replica listens", steps: [.count(0), .answer("a")]),
        Case(testDescription: "nobody has answered", steps: [.count(1)]),
        Case(testDescription: "an answer is missing", steps: [.count(2), .answer("a", present: [0])]),
        Case(testDescription: "one replica answers twice", steps: [.count(2), .answer("a"), .answer("a")]),
        Case(testDescription: "all have answered", steps: [.count(2), .answer("a"), .answer("b")], absent: [1, 2]),
        Case(
            testDescription: "one has a stream", steps: [.count(2), .answer("a"), .answer("b", present: [1])],
            present: [2], absent: [1]),
        Case(
            testDescription: "both have one",
            steps: [.count(2), .answer("a", present: [0]), .answer("b", present: [1])],
            present: [1, 2]),
        Case(
            testDescription: "a replica that listened a second ago does not answer",
            steps: [.count(2), .count(1, at: 11), .answer("a")]),
        Case(
            testDescription: "a replica that listened four seconds ago is gone",
            steps: [.count(2, at: 8), .forget(before: 12), .count(1, at: 12), .answer("a")], absent: [1, 2]),
        Case(
            testDescription: "the question is too old", steps: [.forget(before: 13), .count(1, at: 13), .answer("a")],
            isForgotten: true),
        Case(
            testDescription: "the question is nearly too old",
            steps: [.forget(before: 12), .count(1, at: 12), .answer("a")], absent: [1, 2]),
        Case(testDescription: "the answer is to another question", steps: [.count(1), .answer("a", to: "other")]),
    ]

    @Test(arguments: cases) func question_isSettled(_ one: Case) {
        var questions = PresenceQuestions()
        questions.ask("q", about: [Self.lane(1), Self.lane(2, "ben")], at: .seconds(10))
        for step in one.steps {
            switch step {
            case .count(let count, let second): questions.count(count, at: .seconds(second))
            case .answer(let replica, let present, let id): questions.answer(id, by: replica, present: present)
            case .forget(let second): questions.forget(before: .seconds(second))
            }
        }
        let (present, absent) = questions.settled()
        #expect(present.map(\.id) == one.present && absent.map(\.id) == one.absent)
        let again = questions.settled()
        #expect(again.present.isEmpty && again.absent.isEmpty)
        // What is settled or forgotten may be asked again.
        let isOpen = one.present.isEmpty && one.absent.isEmpty && !one.isForgotten
        #expect(questions.unasked([Self.lane(1)]).isEmpty == isOpen)
    }

    @Test func lanes_areAskedAboutOnce_andOnlyIfAnAnswerHelps() {
        var questions = PresenceQuestions()
        let lanes = [Self.lane(1), Self.lane(2, isPaused: true), Self.lane(3, nil), Self.lane(4)]
        #expect(questions.unasked(lanes).map(\.id) == [1, 4])
        questions.ask("q", about: [lanes[0]], at: .zero)
        #expect(questions.unasked(lanes).map(\.id) == [4])
    }

    @Test func replicas_areCountedOnceASecond() {
        var questions = PresenceQuestions()
        #expect(questions.isCountDue(at: .zero))
        questions.count(2, at: .zero)
        #expect(!questions.isCountDue(at: .milliseconds(999)) && questions.isCountDue(at: .seconds(1)))
    }

    // MARK: Notices

    @Test(arguments: [
        PresenceNotice.question(id: "q", from: "a", []),
        .question(id: "q", from: "a", [Owner(tenant: "t", userId: "ada"), Owner(tenant: "", userId: "ben")]),
        .answer(id: "q", from: "a", present: []), .answer(id: "q", from: "a", present: [0, 17]),
    ])
    func notice_isReadAsItWasWritten(_ notice: PresenceNotice) {
        #expect(PresenceNotice(payload: notice.payload) == notice)
    }

    @Test(arguments: ["", "?", "?\nq", "?\nq\na\nt", "x\nq\na"]) func malformedNotice_isIgnored(_ payload: String) {
        #expect(PresenceNotice(payload: payload) == nil)
    }

    @Test func questions_fitIntoANotification() {
        let lanes = (1...200).map { Self.lane($0, ID(String(repeating: "u", count: 120))) }
        let parts = PresenceNotice.parts(of: lanes)
        #expect(parts.count > 1 && parts.flatMap { $0 }.map(\.id) == lanes.map(\.id))
        for part in parts {
            let notice = PresenceNotice.question(id: "1234567890123", from: "1234567890123", part.compactMap(\.owner))
            #expect(notice.payload.utf8.count < 8_000)
        }
    }

    /// While the database is away, the sender takes nothing.
    @Test func inbox_isBounded_andKeepsTheNewest() {
        var inbox = PresenceInbox()
        for number in 0...3 * OutboxLimits.presenceNoticesMax {
            inbox.add(.answer(id: "\(number)", from: "a", present: []))
        }
        let notices = inbox.take()
        #expect((1...OutboxLimits.presenceNoticesMax).contains(notices.count))
        #expect(notices.last == .answer(id: "\(3 * OutboxLimits.presenceNoticesMax)", from: "a", present: []))
        #expect(inbox.take().isEmpty)
    }
}

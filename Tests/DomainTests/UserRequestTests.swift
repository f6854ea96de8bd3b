import Domain
import TestSupport
import Testing
import Values

/// Requests between users: the permitted actions, and the notifications that users receive (R-16).
@Suite(.timed) struct UserRequestTests {
    private static let request = UserRequest(
        id: ID("r1"), kind: .friend, fromUserId: ID("ana"), toUserId: ID("ben"), fromName: "Ana",
        createdAt: Timestamp(microseconds: 1))

    private static let later = Timestamp(microseconds: 2)

    @Test(arguments: [RequestAnswer.accepted, .declined], [UserRequest.Actor.recipient, .backend])
    func request_isAnsweredOnce_byRecipientOrBackend(_ answer: RequestAnswer, _ actor: UserRequest.Actor) throws {
        var request = Self.request
        try request.answer(answer, by: actor, at: Self.later)
        #expect(request.status == answer.status)
        #expect(request.answeredAt == Self.later)
        let answered = request
        try request.answer(answer, by: actor, at: Timestamp(microseconds: 3))
        #expect(request == answered)
        let other: RequestAnswer = answer == .accepted ? .declined : .accepted
        #expect(throws: Failure.self) { try answered.answering(other, by: actor) }
        #expect(throws: Failure.self) { try answered.checkWithdrawal(by: .requester) }
    }

    @Test func requesterCannotAnswer_andRecipientCannotWithdraw() throws {
        #expect(throws: Failure.self) { try Self.request.answering(.accepted, by: .requester) }
        #expect(throws: Failure.self) { try Self.request.checkWithdrawal(by: .recipient) }
        try Self.request.checkWithdrawal(by: .requester)
        try Self.request.checkWithdrawal(by: .backend)
    }

    @Test func eachSide_receivesItsPart() throws {
        let asked = RequestNotification.draft(Self.request)
        #expect(asked.userId == ID("ben"))
        #expect(asked.category == .request)
        #expect(asked.title == "Friend Request")
        #expect(asked.message == "Ana wants to be your friend")
        let accepted = RequestNotification.draft(try Self.request.answering(.accepted, by: .recipient))
        #expect(accepted.userId == ID("ana"))
        #expect(accepted.category == .request)
        #expect(accepted.title == "Friend Request Accepted")
        #expect(accepted.priority == .normal)
        let declined = RequestNotification.draft(try Self.request.answering(.declined, by: .recipient))
        #expect(declined.priority == .low)
        #expect(Set([asked, accepted, declined].map(\.eventId)).count == 3)
        let nameless = UserRequest(
            id: ID("r"), kind: .follow, fromUserId: ID("a"), toUserId: ID("b"), createdAt: Self.later)
        #expect(RequestNotification.draft(nameless).message == "Someone wants to follow you")
    }

    @Test(arguments: [
        "{}", #"{"kind":"friend"}"#, #"{"kind":"enemy","toUserId":"b"}"#, #"{"kind":"friend","toUserId":""}"#,
        #"{"kind":"friend","toUserId":"b","fromName":"a\nb"}"#, #"{"kind":"friend","toUserId":"b","to":"c"}"#,
    ])
    func unusableWish_isRefused(_ body: String) throws {
        var fields = try Fields(Array(body.utf8))
        _ = RequestDraft(reading: &fields)
        #expect(throws: Failure.self) { try fields.finish() }
    }

    @Test func usersAskForThemselves_andBackendsSayForWhom() throws {
        func wish(_ body: String) throws -> RequestDraft {
            var fields = try Fields(Array(body.utf8))
            let wish = RequestDraft(reading: &fields)
            try fields.finish()
            return wish
        }
        let own = try wish(#"{"kind":"group","toUserId":"b"}"#)
        #expect(try own.requester(caller: ID("a"), isService: false) == ID("a"))
        #expect(throws: Failure.self) { try own.requester(caller: ID("b"), isService: false) }
        #expect(throws: Failure.self) { try own.requester(caller: ID("backend"), isService: true) }
        let other = try wish(#"{"kind":"group","toUserId":"b","fromUserId":"c"}"#)
        #expect(throws: Failure.self) { try other.requester(caller: ID("a"), isService: false) }
        #expect(try other.requester(caller: ID("backend"), isService: true) == ID("c"))
    }
}

extension UserRequest {
    fileprivate func answering(_ answer: RequestAnswer, by actor: Actor) throws -> UserRequest {
        var request = self
        try request.answer(answer, by: actor, at: Timestamp(microseconds: 9))
        return request
    }
}

import Domain
import TestSupport
import Testing
import Values

@Suite(.timed) struct NotificationStateTests {
    let now = Timestamp(microseconds: 2_000_000)
    let earlier = Timestamp(microseconds: 1_000_000)

    @Test func reading_impliesSeen_andArchivingImpliesSeen() throws {
        let read = NotificationState().applying(try #require(NotificationStateChange(read: true)), at: now)
        #expect(read == NotificationState(seenAt: now, readAt: now))
        let archived = NotificationState().applying(try #require(NotificationStateChange(archived: true)), at: now)
        #expect(archived == NotificationState(seenAt: now, archivedAt: now))
    }

    @Test func repeatingAChange_leavesTheFirstMoment() throws {
        let change = try #require(NotificationStateChange(read: true))
        let first = NotificationState(seenAt: earlier).applying(change, at: earlier)
        #expect(first.applying(change, at: now) == first)
    }

    @Test func markingUnread_leavesSeen_andMarkingUnseen_undoesAll() throws {
        let all = NotificationState(seenAt: earlier, readAt: earlier, archivedAt: earlier)
        let unread = all.applying(try #require(NotificationStateChange(read: false)), at: now)
        #expect(unread == NotificationState(seenAt: earlier, archivedAt: earlier))
        let unseen = all.applying(try #require(NotificationStateChange(seen: false)), at: now)
        #expect(unseen == NotificationState())
        let back = all.applying(try #require(NotificationStateChange(archived: false)), at: now)
        #expect(back == NotificationState(seenAt: earlier, readAt: earlier))
    }

    @Test func contradictionAndEmptyBody_areNoChange() {
        #expect(NotificationStateChange() == nil)
        #expect(NotificationStateChange(seen: false, read: true) == nil)
        #expect(NotificationStateChange(seen: false, archived: true) == nil)
    }

    @Test(arguments: [
        ("{}", ["/seen"]), (#"{"seen":null}"#, ["/seen"]), (#"{"seen":"yes"}"#, ["/seen", "/seen"]),
        (#"{"seen":false,"read":true}"#, ["/seen"]), (#"{"read":true,"opened":true}"#, ["/opened"]),
    ])
    func badChange_isNamedByItsPointer(_ body: String, _ pointers: [String]) throws {
        let failure = #expect(throws: Failure.self) {
            var fields = try Fields(Array(body.utf8))
            _ = NotificationStateChange(reading: &fields)
            try fields.finish()
        }
        #expect(Set(failure?.fields.map(\.pointer) ?? []) == Set(pointers))
    }

    @Test func change_isWrittenInItsNormalForm() throws {
        let read = try #require(NotificationStateChange(read: true))
        #expect(String(decoding: JSONWriter.bytes(read), as: UTF8.self) == #"{"seen":true,"read":true}"#)
    }

    /// Every state that a series of changes can reach satisfies the two rules.
    @Test func readAndArchived_areAlwaysSeen() {
        var seen: Set<NotificationState> = [NotificationState()]
        var open = Array(seen)
        let flags: [Bool?] = [nil, true, false]
        while let state = open.popLast() {
            for seenFlag in flags {
                for readFlag in flags {
                    for archivedFlag in flags {
                        guard
                            let change = NotificationStateChange(seen: seenFlag, read: readFlag, archived: archivedFlag)
                        else { continue }
                        let next = state.applying(change, at: now)
                        #expect(next.isSeen || (!next.isRead && !next.isArchived))
                        if seen.insert(next).inserted { open.append(next) }
                    }
                }
            }
        }
        #expect(seen.count == 5)
    }
}

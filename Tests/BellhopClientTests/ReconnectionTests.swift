import Foundation
import Testing

@testable import BellhopClient

struct ReconnectionTests {
    /// CUT N-1, decision 14: 1, 2, 4, 8, 16, then 30 s, ten tries at most.
    @Test func waits_doubleUpToThirtySeconds_andEndAfterTenTries() {
        var reconnection = Reconnection()
        let waits = (0..<11).map { _ in reconnection.delayAfterFailure(serverMilliseconds: nil, jitter: 0.5) }
        #expect(waits == [1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 30000, 30000, nil])
    }

    /// CUT N-1: a connection starts the count again.
    @Test func connection_resetsTheCount() {
        var reconnection = Reconnection()
        for _ in 0..<9 { _ = reconnection.delayAfterFailure(serverMilliseconds: nil, jitter: 0) }
        reconnection.connected()
        #expect(reconnection.delayAfterFailure(serverMilliseconds: nil, jitter: 0.5) == 1000)
    }

    /// VIS Q2: the jitter moves a wait by a fifth at most, and never past the longest.
    @Test(arguments: [0.0, 0.25, 1, 7, -3]) func jitter_staysWithinAFifth(jitter: Double) throws {
        var reconnection = Reconnection()
        for base in [1000, 2000, 4000, 8000, 16000, 30000] {
            let next = reconnection.delayAfterFailure(serverMilliseconds: nil, jitter: jitter)
            let wait = try #require(next)
            #expect(wait >= base * 8 / 10)
            #expect(wait <= min(base * 12 / 10, 30000))
        }
    }

    @Test func serversWish_isALowerBound_withinAnHour() {
        var reconnection = Reconnection()
        #expect(reconnection.delayAfterFailure(serverMilliseconds: 7000, jitter: 0.5) == 7000)
        #expect(reconnection.delayAfterFailure(serverMilliseconds: 5, jitter: 0.5) == 2000)
        #expect(reconnection.delayAfterFailure(serverMilliseconds: .max, jitter: 0.5) == 3_600_000)
    }

    @Test func retryField_replacesTheFirstWait() {
        var reconnection = Reconnection()
        reconnection.retryMilliseconds = 100
        let waits = (0..<3).map { _ in reconnection.delayAfterFailure(serverMilliseconds: nil, jitter: 0.5) }
        #expect(waits == [100, 200, 400])
    }

    @Test func retryAfter_isReadAsSecondsOrDate() {
        let now = Date(timeIntervalSince1970: 1_700_000_000)
        #expect(ServiceAnswer.retryAfterMilliseconds("3", now: now) == 3000)
        #expect(ServiceAnswer.retryAfterMilliseconds("Tue, 14 Nov 2023 22:13:30 GMT", now: now) == 10_000)
        #expect(ServiceAnswer.retryAfterMilliseconds("soon", now: now) == nil)
        #expect(ServiceAnswer.retryAfterMilliseconds("-1", now: now) == nil)
    }
}

struct BadgeTests {
    /// CNT R-RT-3: newer overwrites, older is ignored.
    @Test func olderCounts_areIgnored() {
        var state = BadgeState()
        #expect(state.merge(BadgeCounts(messages: 0, requests: 1, bell: 2, version: 5)) == true)
        #expect(state.merge(BadgeCounts(messages: 9, requests: 9, bell: 9, version: 4)) == false)
        #expect(state.counts?.total == 3)
        let update = ServerSentEvent(
            id: "e-1", name: "badges:update", data: #"{"messages":0,"requests":0,"bell":1,"total":1,"version":6}"#)
        #expect(state.merge(update) == true)
        #expect(state.merge(update) == false)
        #expect(state.counts?.bell == 1)
    }

    /// Decision 34: what was seen before a restore may never have happened.
    @Test func countsOfAnotherEpoch_replaceAlways() {
        var state = BadgeState()
        #expect(state.merge(BadgeCounts(messages: 0, requests: 0, bell: 5, version: 900, epoch: "a")) == true)
        let restored = #"{"messages":0,"requests":0,"bell":1,"total":1,"version":7,"epoch":"b"}"#
        #expect(state.merge(ServerSentEvent(id: "", name: "badges:update", data: restored)) == true)
        #expect(state.counts?.bell == 1)
        #expect(state.merge(BadgeCounts(messages: 0, requests: 0, bell: 9, version: 6, epoch: "b")) == false)
    }

    @Test func countsOfReady_areTakenOver() {
        var state = BadgeState()
        let ready = ServerSentEvent(
            id: "e-1", name: "stream:ready", data: #"{"badges":{"messages":0,"requests":0,"bell":4,"version":2}}"#)
        #expect(state.merge(ready) == true)
        #expect(state.counts?.bell == 4)
    }

    /// CNT CONST-POLL, R-RECON-4/5: every 10 s connected, 90 s not, at once on reconnection, never in the background.
    @Test func polls_followTheConnection() {
        var schedule = PollSchedule()
        #expect(schedule.secondsUntilDue(nowSeconds: 100) == 0)
        schedule.synced(atSeconds: 100)
        #expect(schedule.secondsUntilDue(nowSeconds: 100) == 90)
        schedule.connected()
        #expect(schedule.secondsUntilDue(nowSeconds: 120) == 0)
        schedule.synced(atSeconds: 120)
        #expect(schedule.secondsUntilDue(nowSeconds: 123) == 7)
        schedule.isForeground = false
        #expect(schedule.secondsUntilDue(nowSeconds: 500) == nil)
    }

    /// CNT R-RECON-2.
    @Test func tabSwitch_reconcilesAfterFifteenSeconds() {
        var schedule = PollSchedule()
        schedule.synced(atSeconds: 0)
        #expect(!schedule.isDueOnTabSwitch(nowSeconds: 14.9))
        #expect(schedule.isDueOnTabSwitch(nowSeconds: 15))
    }
}

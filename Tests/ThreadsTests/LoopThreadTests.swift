import TestSupport
import Testing
import Threads

@Suite(.timed) struct LoopThreadTests {
    @Test func wake_endsAWait_andStopEndsTheLoop() {
        let (thread, passes) = (LoopThread("passes"), Locked(0))
        thread.start {
            while thread.wait() {
                passes.withLock { $0 += 1 }
                passes.broadcast()
            }
        }
        thread.wake()
        passes.wait { $0 == 1 ? () : nil }
        thread.stop()
        #expect(passes.withLock { $0 } == 1)
    }

    @Test func aWake_beforeTheWait_isNotLost() {
        let (thread, passes) = (LoopThread("early"), Locked(0))
        thread.wake()
        thread.start {
            while thread.wait() {
                passes.withLock { $0 += 1 }
                passes.broadcast()
            }
        }
        passes.wait { $0 == 1 ? () : nil }
        thread.stop()
    }

    @Test func time_endsAWait() {
        let (thread, passes) = (LoopThread("ticks"), Locked(0))
        thread.start {
            while thread.wait(atMost: .milliseconds(1)) {
                passes.withLock { $0 += 1 }
                passes.broadcast()
            }
        }
        passes.wait { $0 >= 3 ? () : nil }
        thread.stop()
        #expect(thread.isStopping)
    }

    @Test func aPause_isNotShortenedByWakes_butByTheStop() {
        let (thread, outcome) = (LoopThread("pauses"), Locked<Bool?>(nil))
        thread.start {
            let goesOn = thread.pause(for: .seconds(600))
            outcome.withLock { $0 = goesOn }
        }
        thread.wake()
        #expect(outcome.wait(atMost: .milliseconds(20)) { $0 } == nil)
        thread.stop()
        #expect(outcome.withLock { $0 } == false)
    }

    /// The thread releases the objects that the body owns before `stop` returns.
    @Test func stop_returnsWhenWhatTheBodyOwnsIsReleased() {
        final class Owned {
            let released: Locked<Bool>
            init(_ released: Locked<Bool>) { self.released = released }
            deinit { released.withLock { $0 = true } }
        }
        let (thread, released) = (LoopThread("owner"), Locked(false))
        do {
            let owned = Owned(released)
            thread.start { withExtendedLifetime(owned) { while thread.wait() {} } }
        }
        #expect(!released.withLock { $0 })
        thread.stop()
        #expect(released.withLock { $0 })
    }

    @Test func loop_canBeStoppedBySeveral_andRestarted() async {
        let (thread, passes) = (LoopThread("again"), Locked(0))
        for _ in 0..<3 {
            thread.start {
                #expect(thread.isCurrent)
                while thread.wait() {}
                passes.withLock { $0 += 1 }
            }
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<4 { group.addTask { thread.stop() } }
            }
        }
        #expect(passes.withLock { $0 } == 3)
        #expect(!thread.isCurrent)
        thread.stop()
    }

    @Test func locked_losesNoConcurrentIncrement() {
        let count = Locked(0)
        let threads = (0..<4).map { LoopThread("counter-\($0)") }
        for thread in threads { thread.start { for _ in 0..<1_000 { count.withLock { $0 += 1 } } } }
        for thread in threads { thread.join() }
        #expect(count.withLock { $0 } == 4_000)
    }
}

import Glibc

/// A lock and a condition variable whose waits are bounded by a monotonic clock.
///
/// `NSCondition` uses the wall clock: when that is set back by an hour, a wait of a second takes an hour.
@usableFromInline
final class Condition {
    private struct Parts {
        var mutex = pthread_mutex_t()
        var condition = pthread_cond_t()
    }

    /// In one allocation, because a lock is made for each event.
    private let parts = UnsafeMutablePointer<Parts>.allocate(capacity: 1)
    /// Guards the state of its owner.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    @usableFromInline
    init() {
        parts.initialize(to: Parts())
        mutex = withUnsafeMutablePointer(to: &parts.pointee.mutex) { $0 }
        condition = withUnsafeMutablePointer(to: &parts.pointee.condition) { $0 }
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        parts.deallocate()
    }

    @usableFromInline
    func lock() { pthread_mutex_lock(mutex) }

    @usableFromInline
    func unlock() { pthread_mutex_unlock(mutex) }

    @usableFromInline
    func wait() { pthread_cond_wait(condition, mutex) }

    /// Returns after a signal, after the time limit, or spuriously.
    @usableFromInline
    func wait(atMost duration: Duration) {
        var deadline = timespec()
        clock_gettime(CLOCK_MONOTONIC, &deadline)
        let (seconds, attoseconds) = duration.components
        let nanoseconds = deadline.tv_nsec + Int(attoseconds / 1_000_000_000)
        // Caps the wait at centuries, which is as good as unlimited.
        deadline.tv_sec += Int(min(seconds, 1 << 40)) + nanoseconds / 1_000_000_000
        deadline.tv_nsec = nanoseconds % 1_000_000_000
        pthread_cond_timedwait(condition, mutex, &deadline)
    }

    @usableFromInline
    func signal() { pthread_cond_signal(condition) }

    @usableFromInline
    func broadcast() { pthread_cond_broadcast(condition) }
}

import Glibc

/// A lock and a condition variable whose waits are bounded by a monotonic clock.
///
/// `NSCondition` uses the wall clock: when that is set back by an hour, a wait of a second takes an hour.
@usableFromInline
final class Condition {
    /// Guards the state of its owner.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    @usableFromInline
    init() {
        mutex.initialize(to: pthread_mutex_t())
        condition.initialize(to: pthread_cond_t())
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
        condition.deallocate()
        mutex.deallocate()
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

// A clock that a test moves forward, so that the test does not wait for real time.

/**
 * Returns a clock for `connect`. `skip(ms)` moves it forward and runs each timer that becomes due, in order.
 *
 * By default the clock also runs with the system's time. With `isStanding` only `skip` moves it.
 */
export function movedClock({ isStanding = false, begin = Date.now() } = {}) {
  const timers = new Set();
  let skipped = 0;
  const now = () => (isStanding ? begin : Date.now()) + skipped;
  return {
    now,
    random: Math.random,
    after(ms, run) {
      const timer = { at: now() + Math.max(ms, 0), stop, fire };
      const handle = isStanding ? undefined : setTimeout(fire, Math.min(Math.max(ms, 0), 2 ** 31 - 1));
      timers.add(timer);
      return stop;

      function stop() {
        timers.delete(timer);
        clearTimeout(handle);
      }
      function fire() {
        stop();
        run();
      }
    },
    skip(ms) {
      const target = now() + ms;
      for (;;) {
        const [next] = [...timers].filter(({ at }) => at <= target).sort((one, other) => one.at - other.at);
        if (!next) break;
        skipped += Math.max(0, next.at - now());
        next.fire();
      }
      skipped += Math.max(0, target - now());
    },
  };
}

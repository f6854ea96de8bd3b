// Runs a pure machine, `initial(options)` and `receive(state, input) → {state, actions}`, with a clock, and performs
// its actions. A machine neither waits nor does I/O, so JavaScript and Swift share its test vectors. types.d.ts lists
// the inputs and the actions.

/**
 * @typedef {import("../types").Clock} Clock
 * @typedef {import("../types").Action} Action
 * @typedef {import("../types").Input} Input
 */

/** A longer wait would overflow the timer's 32 bits, and end at once. */
const waitMsMax = 2 ** 31 - 1;

/** @type {Clock} */
export const systemClock = {
  now: () => Date.now(),
  random: () => Math.random(),
  after(ms, run) {
    const timer = setTimeout(run, Math.min(Math.max(ms, 0), waitMsMax));
    return () => clearTimeout(timer);
  },
};

/** Reports an error of a listener, which belongs to the app, as uncaught; the other listeners are still called.
 * @param {unknown} error */
export function report(error) {
  (globalThis.reportError ?? console.error)(error);
}

/**
 * @template Value
 * @returns {import("../types").Listeners<Value>}
 */
export function listeners() {
  /** @type {Set<{listener: (value: Value) => void}>} */
  const all = new Set();
  return {
    tell(value) {
      for (const entry of [...all]) {
        try {
          if (all.has(entry)) entry.listener(value);
        } catch (error) {
          report(error);
        }
      }
    },
    add(listener) {
      if (typeof listener !== "function") throw new TypeError("a listener must be a function");
      // Wrapped, so that a function added twice is called twice and removed one at a time.
      const entry = { listener };
      all.add(entry);
      return () => void all.delete(entry);
    },
    size: () => all.size,
  };
}

/**
 * Runs a machine. `perform` carries out an action, and may return a promise of its answer.
 * @template State, Options
 * @template {{do: string}} [Wanted=Action] the actions of the machine, beside timers
 * @param {import("../types").Machine<State, Options>} machine
 * @param {Options} options
 * @param {Clock} clock
 * @param {(action: Wanted, cause: Input) => unknown} perform `cause`: the input that led to the action
 * @returns {import("../types").Running<State>}
 */
export function run(machine, options, clock, perform) {
  let state = machine.initial(options);
  /** @type {Map<string, () => void>} */
  const timers = new Map();
  /** @type {{input: Input, done: (answers: any) => void}[]} */
  const waiting = [];
  const changed = /** @type {ReturnType<typeof listeners<State>>} */ (listeners());
  let isBusy = false;
  let isClosed = false;

  /** @param {Action} action */
  function setTimer({ name, at }) {
    timers.get(name)?.();
    timers.delete(name);
    if (at === null || at === undefined) return;
    const wait = at - clock.now();
    timers.set(name, clock.after(Math.min(wait, waitMsMax), () => {
      if (wait > waitMsMax) return setTimer({ do: "timer", name, at });
      timers.delete(name);
      receive({ type: "timer", name });
    }));
  }

  function work() {
    isBusy = true;
    try {
      for (let next = waiting.shift(); next && !isClosed; next = waiting.shift()) {
        const before = state;
        const { input } = next;
        const result = machine.receive(state, { now: clock.now(), random: clock.random(), ...input });
        state = result.state;
        const answers = result.actions.map((action) => action.do === "timer" ? setTimer(action)
          : perform(/** @type {Wanted} */ (/** @type {unknown} */ (action)), input));
        if (state !== before) changed.tell(state);
        next.done(Promise.all(answers));
      }
    } finally {
      isBusy = false;
    }
  }

  /** Processes one input after another, even if an action causes the next. Resolves with the actions' answers.
   * @param {Input} input
   * @returns {Promise<any[]>} */
  function receive(input) {
    if (isClosed) return Promise.resolve([]);
    return new Promise((done) => {
      waiting.push({ input, done });
      if (!isBusy) work();
    });
  }

  return {
    get: () => state,
    receive,
    onChange: changed.add,
    close() {
      isClosed = true;
      for (const cancel of timers.values()) cancel();
      timers.clear();
    },
  };
}

// A pure machine is run here: `initial(options)` and `receive(state, input) → {state, actions}` with a clock, and its
// actions are carried out. A machine neither waits nor calls: JavaScript and Swift share its vectors.
// What it receives and may ask for stands in types.d.ts.

/**
 * @typedef {import("../types").Clock} Clock
 * @typedef {import("../types").Action} Action
 * @typedef {import("../types").Input} Input
 */

/** A wait that is longer would overflow a timer's 32 bits, and end at once. */
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

/** An error of a listener is the app's: it is reported as uncaught, and the other listeners are still told.
 * @param {unknown} error */
export function report(error) {
  const known = /** @type {any} */ (globalThis);
  if (known.reportError) known.reportError(error);
  else console.error(error);
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
      // Wrapped, so that a function that is added twice is told twice and taken away one at a time.
      const entry = { listener };
      all.add(entry);
      return () => void all.delete(entry);
    },
    size: () => all.size,
  };
}

/**
 * Runs a machine. `perform` carries an action out, and may return the promise of its answer.
 * @template State, Options
 * @param {import("../types").Machine<State, Options>} machine
 * @param {Options} options
 * @param {Clock} clock
 * @param {(action: Action) => any} perform
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
        const result = machine.receive(state, { now: clock.now(), random: clock.random(), ...next.input });
        state = result.state;
        const answers = result.actions.map((action) => action.do === "timer" ? setTimer(action) : perform(action));
        if (state !== before) changed.tell(state);
        next.done(Promise.all(answers));
      }
    } finally {
      isBusy = false;
    }
  }

  /** One input after the other, also where an action causes the next; the promise is that of the actions' answers.
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

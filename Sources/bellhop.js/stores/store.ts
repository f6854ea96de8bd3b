// Runs a pure machine, `initial(options)` and `receive(state, input) → {state, actions}`, with a clock, and performs
// its actions. A machine neither waits nor does I/O, so JavaScript and Swift share its test vectors. inputs.ts and
// actions.ts list the inputs and the actions.
import type { TimerAction } from "../actions.js";
import type { Clock, Listeners, Machine, Running, Unstamped } from "../types.js";

/** A longer wait would overflow the timer's 32 bits, and end at once. */
const waitMsMax = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  after(ms, run) {
    const timer = setTimeout(run, Math.min(Math.max(ms, 0), waitMsMax));
    return () => clearTimeout(timer);
  },
};

/** Reports an error of a listener, which belongs to the app, as uncaught; the other listeners are still called. */
export function report(error: unknown) {
  (globalThis.reportError ?? console.error)(error);
}

export function listeners<Value>(): Listeners<Value> {
  const all = new Set<{ listener: (value: Value) => void }>();
  return {
    emit(value) {
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

/** Runs a machine. `perform` carries out an action, and may return a promise of its answer.
 * @param perform `cause`: the input that led to the action */
export function run<State, Options, Input extends { type: string }, Action extends { do: string }>(
  machine: Machine<State, Options, Input, Action | TimerAction>, options: Options, clock: Clock,
  perform: (action: Action, cause: Unstamped<Input>) => unknown,
): Running<State, Input> {
  let state = machine.initial(options);
  const timers = new Map<string, () => void>();
  const waiting: { input: Unstamped<Input>; done: (answers: Promise<unknown[]>) => void }[] = [];
  const changed = listeners<State>();
  let isBusy = false;
  let isClosed = false;

  function setTimer({ name, at }: TimerAction) {
    timers.get(name)?.();
    timers.delete(name);
    if (at == null) return;
    const wait = at - clock.now();
    timers.set(name, clock.after(Math.min(wait, waitMsMax), () => {
      if (wait > waitMsMax) return setTimer({ do: "timer", name, at });
      timers.delete(name);
      receive({ type: "timer", name } as unknown as Unstamped<Input>);
    }));
  }

  function work() {
    isBusy = true;
    try {
      for (let next = waiting.shift(); next && !isClosed; next = waiting.shift()) {
        const before = state;
        const { input } = next;
        const result = machine.receive(state, { now: clock.now(), random: clock.random(), ...input } as unknown as Input);
        state = result.state;
        const answers = result.actions.map((action) => action.do === "timer" ? setTimer(action as TimerAction)
          : perform(action as Action, input));
        if (state !== before) changed.emit(state);
        next.done(Promise.all(answers));
      }
    } finally {
      isBusy = false;
    }
  }

  /** Processes one input after another, even if an action causes the next. Resolves with the actions' answers. */
  function receive(input: Unstamped<Input>): Promise<unknown[]> {
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

// Common to the stores of all features: a machine that runs as a store.
import { playOnce } from "./player.js";
import { listeners, report, run } from "./store.js";

/**
 * Makes a store with a feature's commands. Each command resolves with the service's answer, `{status, headers, body}`,
 * or with null if there was nothing to request.
 * @param {any} bell
 * @param {any} machine
 * @param {any} options
 * @param {(run: (input: {type: string, [argument: string]: any}) => Promise<any>, it: any) => any} commands
 * @param {string[]} [told] what other stores tell, which the stream does not
 */
export function feature(bell, machine, options, commands, told = []) {
  let users = 0;
  /** @param {any} state @param {any} input */
  function receive(state, input) {
    if (input.type === "user") users += 1;
    // Answers for an earlier user are ignored.
    if (input.type === "answer" && (input.action?.of ?? users) !== users) return { state, actions: [] };
    let result;
    try {
      result = machine.receive(state, input);
    } catch (error) {
      // An event that one feature cannot handle, such as one of a later version, must not end the stream for the
      // others.
      report(error);
      return { state, actions: [] };
    }
    const isPlayed = (/** @type {any} */ action) => action.do === "play";
    result.actions.filter(isPlayed).forEach((/** @type {any} */ action) => playOnce(bell, action));
    const others = result.actions.filter((/** @type {any} */ action) => !isPlayed(action));
    return { state: result.state, actions: others.map((/** @type {any} */ action) => ({ ...action, of: users })) };
  }
  const it = store(bell, { initial: machine.initial, view: machine.view, receive }, options);
  const offs = told.map((name) => bell.on(name, (/** @type {any} */ event) => it.receive({ type: "event", event })));
  /** @param {any} input */
  const run = (input) => it.receive(input).then((answers) => answers.find((one) => one?.status !== undefined) ?? null);
  const { get, subscribe, isWatched } = it;
  return {
    get, subscribe, isWatched,
    /** Fetches the current state from the service. The shown state stays until the answer comes. */
    refresh: () => run({ type: "refresh" }),
    ...commands(run, it),
    close() {
      for (const off of offs) off();
      it.close();
    },
  };
}

/** @param {any} value @param {string} what */
export function checkId(value, what) {
  if (typeof value === "string" && value !== "" && value.length <= 128) return value;
  throw new TypeError(`${what} is a text of 1 to 128 characters, not ${JSON.stringify(value) ?? typeof value}`);
}

/** @param {any} value @param {string} what */
export function checkObject(value, what) {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  throw new TypeError(`${what} is an object, not ${JSON.stringify(value) ?? typeof value}`);
}

/**
 * Makes the store of a feature, with the interface that React's `useSyncExternalStore` expects. A feature adds its
 * commands: `{...store(bell, machine, options), markRead: (id) => it.receive({type: "markRead", id})}`.
 * @template State, Options
 * @param {any} bell
 * @param {import("../types").Machine<State, Options>} machine
 * @param {Options} options
 */
function store(bell, machine, options) {
  /** @type {ReturnType<typeof run<State, Options>>} */
  const it = run(machine, options, bell.clock, perform);
  const shown = /** @type {ReturnType<typeof listeners<void>>} */ (listeners());
  const view = machine.view ?? ((/** @type {any} */ state) => state);
  let viewed = it.get();
  let snapshot = view(viewed);

  /** Returns the same object until it changes. */
  function get() {
    if (it.get() !== viewed) {
      viewed = it.get();
      snapshot = view(viewed);
    }
    return snapshot;
  }

  /** @param {import("../types").Action} action @param {Promise<any>} promise */
  async function answer(action, promise) {
    const { status, headers, body } = await promise;
    if (action.as) it.receive({ type: "answer", as: action.as, status, headers, body, action });
    return { status, headers, body };
  }

  /** @param {import("../types").Action} action @returns {any} */
  function perform(action) {
    switch (action.do) {
      case "fetch": return answer(action, bell.attempt("GET", action.path, undefined, action.headers));
      case "call": return answer(action, bell.attempt(action.method, action.path, action.body, action.headers));
      case "send": return answer(action, bell.deliver(action.method, action.path, action.body, action));
      case "tables": return answer(action, bell.tables.set(it, action));
      case "subscribe": return subscribe(action.topics);
      case "play": return void bell.play(action.haptic, action.sound);
      case "tell": return void bell.tell(action.name, action.data);
      default: throw new TypeError(`a machine asked for "${action.do}", which no store does`);
    }
  }

  /** @param {string[]} topics */
  function subscribe(topics) {
    bell.want(it, topics);
    // A topic that was refused to another store causes no second refusal, so this store is informed here.
    const { refused } = bell.connection.get();
    for (const topic of topics.filter((topic) => refused[topic])) {
      it.receive({ type: "event", event: { name: "topic:refused", data: { topic, problem: refused[topic] }, id: "" } });
    }
  }

  it.onChange(() => {
    const before = snapshot;
    if (get() !== before) shown.tell();
  });
  const detach = bell.attach(it);
  it.receive({ type: "start", user: bell.user, connection: bell.connection.get().status });

  return {
    get,
    receive: it.receive,
    /** @param {() => void} listener */
    subscribe(listener) {
      const remove = shown.add(listener);
      if (shown.size() === 1) it.receive({ type: "watch", watched: true });
      let isThere = true;
      return () => {
        if (!isThere) return;
        isThere = false;
        remove();
        if (shown.size() === 0) it.receive({ type: "watch", watched: false });
      };
    },
    isWatched: () => shown.size() > 0,
    close() {
      detach();
      bell.want(it, null);
      bell.tables?.set(it, null);
      it.close();
    },
  };
}

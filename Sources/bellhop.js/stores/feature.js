// Common to the stores of all features: a machine that runs as a store.
import { playOnce } from "./player.js";
import { listeners, report, run } from "./store.js";

/**
 * @typedef {import("../internal").Attached} Attached
 * @typedef {import("../internal").PlayAction} PlayAction
 * @typedef {import("../internal").StoreAction} StoreAction
 * @typedef {import("../internal").StoreBell} StoreBell
 * @typedef {import("../types").Answer} Answer
 * @typedef {import("../contract").Answer<any, any>} PublicAnswer the answer as the app sees it, typed by each command
 * @typedef {import("../types").Input} Input
 * @typedef {import("../types").Running<unknown>["receive"]} Receive
 */

/**
 * Makes a store with a feature's commands. Each command resolves with the service's answer, `{status, headers, body}`,
 * or with null if there was nothing to request.
 * @template State, Options, Made
 * @param {StoreBell} bell
 * @param {import("../types").Machine<State, Options>} machine
 * @param {Options} options
 * @param {(run: (input: Input) => Promise<PublicAnswer | null>, it: {receive: Receive, get: () => State}) =>
 *   Omit<Made, "get" | "subscribe" | "refresh">} commands
 * @param {string[]} [published] events of other stores, which are not on the stream
 * @returns {Made & import("../internal").Closable}
 */
export function feature(bell, machine, options, commands, published = []) {
  let users = 0;
  /** @param {State} state @param {Input} input */
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
    const isPlayed = (/** @type {{do: string}} */ action) => action.do === "play";
    for (const action of result.actions.filter(isPlayed)) playOnce(bell, /** @type {PlayAction} */ (action), input.event);
    const others = result.actions.filter((action) => !isPlayed(action));
    return { state: result.state, actions: others.map((action) => ({ ...action, of: users })) };
  }
  const it = store(bell, { initial: machine.initial, view: machine.view, kept: machine.kept, receive }, options);
  const offs = published.map((name) => bell.on(name, (event) => void it.receive({ type: "event", event })));
  /** @param {Input} input @returns {Promise<PublicAnswer | null>} */
  const run = async (input) => {
    const answers = await it.receive(input);
    return /** @type {PublicAnswer} */ (answers.find((one) => one?.status !== undefined)) ?? null;
  };
  const { get, subscribe, isWatched, keep } = it;
  const made = {
    get, subscribe, isWatched, keep,
    /** Fetches the current state from the service. The shown state stays until the answer comes. */
    refresh: () => run({ type: "refresh" }),
    ...commands(run, { receive: it.receive, get: it.state }),
    close() {
      for (const off of offs) off();
      it.close();
    },
  };
  return /** @type {Made & import("../internal").Closable} */ (/** @type {unknown} */ (made));
}

/** @param {unknown} value @param {string} what */
export function checkId(value, what) {
  if (typeof value === "string" && value !== "" && value.length <= 128) return value;
  throw new TypeError(`${what} is a text of 1 to 128 characters, not ${JSON.stringify(value) ?? typeof value}`);
}

/** @template Value @param {Value} value @param {string} what */
export function checkObject(value, what) {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  throw new TypeError(`${what} is an object, not ${JSON.stringify(value) ?? typeof value}`);
}

/**
 * Makes the store of a feature, with the interface that React's `useSyncExternalStore` expects. A feature adds its
 * commands: `{...store(bell, machine, options), markRead: (id) => it.receive({type: "markRead", id})}`.
 * @template State, Options
 * @param {StoreBell} bell
 * @param {import("../types").Machine<State, Options>} machine
 * @param {Options} options
 */
function store(bell, machine, options) {
  /** @type {import("../types").Running<State>} */
  const it = run(machine, options, bell.clock, (/** @type {StoreAction} */ action, cause) => perform(bell, it, action, cause));
  const shown = /** @type {import("../types").Listeners<void>} */ (listeners());
  const view = machine.view ?? ((/** @type {State} */ state) => state);
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

  it.onChange(() => {
    const before = snapshot;
    if (get() !== before) shown.tell();
  });
  const detach = bell.attach(it);
  it.receive({ type: "start", user: bell.user, connection: bell.connection.get().status });

  return {
    get,
    state: it.get,
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
    keep: machine.kept && { ...it, run: it, kept: () => machine.kept?.(it.get()) ?? null },
    close() {
      detach();
      bell.want(it, null);
      bell.tables?.set(it, null);
      it.close();
    },
  };
}

/** Performs an action of a machine.
 * @param {StoreBell} bell @param {Attached} it @param {StoreAction} action @param {Input} cause */
function perform(bell, it, action, cause) {
  switch (action.do) {
    case "fetch": return answer(it, action, bell.attempt("GET", action.path, undefined, action.headers));
    case "call": return answer(it, action, bell.attempt(action.method, action.path, action.body, action.headers));
    // A write of an earlier start is not sent again.
    case "send": return answer(it, action, cause.resume?.()
      ?? bell.deliver(action.method, action.path, action.body, action, it, cause));
    case "tables": return bell.tables && answer(it, action, bell.tables.set(it, action));
    case "subscribe": return subscribe(bell, it, action.topics);
    case "play": return void bell.play(action.haptic, action.sound, null);
    case "tell": return void bell.publish(action.name, action.data);
    default: throw new TypeError(`a machine asked for "${/** @type {{do: string}} */ (action).do}", which no store does`);
  }
}

/** @param {Attached} it @param {StoreAction} action @param {Promise<Answer>} promise */
async function answer(it, action, promise) {
  const { status, headers, body } = await promise;
  if ("as" in action && action.as) it.receive({ type: "answer", as: action.as, status, headers, body, action });
  return { status, headers, body };
}

/** @param {StoreBell} bell @param {Attached} it @param {string[]} topics */
function subscribe(bell, it, topics) {
  try {
    bell.want(it, topics);
  } catch (/** @type {any} */ error) {
    // The stream has no room for them. A store must not throw into the view that opens it.
    const problem = { code: "topics.full", detail: error.message };
    for (const topic of topics) {
      const event = { name: "topic:refused", data: { topic, problem }, id: "" };
      it.receive({ type: "event", event });
      bell.publish(event.name, event.data);
    }
    return;
  }
  // A topic that was refused to another store causes no second refusal, so this store is informed here.
  const { refused } = bell.connection.get();
  for (const topic of topics.filter((topic) => refused[topic])) {
    it.receive({ type: "event", event: { name: "topic:refused", data: { topic, problem: refused[topic] }, id: "" } });
  }
}

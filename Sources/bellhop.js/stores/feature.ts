// Common to the stores of all features: a machine that runs as a store.
import { playOnce } from "./player.js";
import { listeners, report, run } from "./store.js";
import type { PlayAction, StoreAction } from "../actions.js";
import type { Answer as AppAnswer } from "../contract.js";
import type { Features } from "../features.js";
import type { Closable, StoreBell } from "../internal.js";
import type { CommandOf, EventOf, MachineEvent, StoreInput, StoreName } from "../machines/inputs.js";
import type { Answer, KeyedFeature, Machine, Running, Unstamped } from "../types.js";

/** A feature with one store per argument list: `Keyed<"queue">`. */
export type Keyed<
  Name extends "conversation" | "requests" | "queue" | "booking" | "dj" | "leaderboard" | "feed" | "visibleRows",
> = KeyedFeature<Parameters<Features[Name]>, ReturnType<Features[Name]>>;

/** A machine that runs as a store. */
type It<State = unknown> = Running<State, StoreInput>;

/** Passes a command to a store's machine. Its caller knows the type of the answer. */
export type Run<Name extends StoreName> =
  <Body, Status>(command: CommandOf<Name>) => Promise<AppAnswer<Body, Status> | null>;

/** Makes a store with a feature's commands. Each command resolves with the service's answer, `{status, headers, body}`,
 * or with null if there was nothing to request.
 * @param published events of other stores, which are not on the stream */
export function feature<State, Options, Made extends { get(): unknown }>(
  bell: StoreBell, machine: Machine<State, Options, StoreInput, StoreAction, ReturnType<Made["get"]>>, options: Options,
  commands: (
    run: Run<StoreName>, it: { receive: It["receive"]; get: () => State },
  ) => Omit<Made, "get" | "subscribe" | "refresh">,
  published: string[] = [],
): Made & Closable {
  let users = 0;
  function receive(state: State, input: StoreInput) {
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
    const isPlayed = (action: StoreAction): action is PlayAction => action.do === "play";
    for (const action of result.actions.filter(isPlayed)) playOnce(bell, action, input.event);
    const others = result.actions.filter((action) => !isPlayed(action));
    return { state: result.state, actions: others.map((action) => ({ ...action, of: users })) };
  }
  const it = store(bell, { initial: machine.initial, snapshot: machine.snapshot, kept: machine.kept, receive }, options);
  const offs = published.map((name) =>
    bell.on(name, (event) => void it.receive({ type: "event", event: event as MachineEvent })));
  const run = async <Body, Status>(command: CommandOf<StoreName>): Promise<AppAnswer<Body, Status> | null> => {
    const answers = await it.receive(command) as (AppAnswer<Body, Status> | undefined)[];
    return answers.find((one) => one?.status !== undefined) ?? null;
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
  return made as unknown as Made & Closable;
}

export function checkId(value: unknown, what: string) {
  if (typeof value === "string" && value !== "" && value.length <= 128) return value;
  throw new TypeError(`${what} is a text of 1 to 128 characters, not ${JSON.stringify(value) ?? typeof value}`);
}

export function checkObject<Value>(value: Value, what: string) {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  throw new TypeError(`${what} is an object, not ${JSON.stringify(value) ?? typeof value}`);
}

/** Makes the store of a feature, with the interface that React's `useSyncExternalStore` expects. A feature adds its
 * commands: `{...store(bell, machine, options), markRead: (id) => it.receive({type: "markRead", id})}`. */
function store<State, Options>(
  bell: StoreBell, machine: Machine<State, Options, StoreInput, StoreAction>, options: Options,
) {
  const it: It<State> = run(machine, options, bell.clock, (action: StoreAction, cause) =>
    perform(bell, it, action, cause));
  const shown = listeners<void>();
  const draw = machine.snapshot ?? ((state: State) => state);
  let viewed = it.get();
  let snapshot = draw(viewed);

  /** Returns the same object until it changes. */
  function get() {
    if (it.get() !== viewed) {
      viewed = it.get();
      snapshot = draw(viewed);
    }
    return snapshot;
  }

  it.onChange(() => {
    const before = snapshot;
    if (get() !== before) shown.emit();
  });
  const detach = bell.attach(it);
  it.receive({ type: "start", user: bell.user, connection: bell.connection.get().status });

  return {
    get,
    state: it.get,
    receive: it.receive,
    subscribe(listener: () => void) {
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
      bell.setTopics(it, null);
      bell.tables?.set(it, null);
      it.close();
    },
  };
}

/** Performs an action of a machine. */
function perform(bell: StoreBell, it: It, action: StoreAction, cause: Unstamped<StoreInput>) {
  switch (action.do) {
    case "fetch": return answer(it, action, bell.attempt("GET", action.path, undefined, action.headers));
    case "call": return answer(it, action, bell.attempt(action.method, action.path, action.body, action.headers));
    // A write of an earlier start is not sent again.
    case "send": return answer(it, action, cause.resume?.()
      ?? bell.deliver(action.method, action.path, action.body, action, it, cause));
    case "tables": return bell.tables && answer(it, action, bell.tables.set(it, action));
    case "subscribe": return subscribe(bell, it, action.topics);
    case "play": return void bell.play(action.haptic, action.sound, null);
    case "publish": return void bell.publish(action.name, action.data);
    default: throw new TypeError(`a machine asked for "${(action as { do: string }).do}", which no store does`);
  }
}

async function answer(it: It, action: StoreAction, promise: Promise<Answer>) {
  const { status, headers, body } = await promise;
  if ("as" in action && action.as) it.receive({ type: "answer", as: action.as, status, headers, body, action });
  return { status, headers, body };
}

function subscribe(bell: StoreBell, it: It, topics: string[]) {
  try {
    bell.setTopics(it, topics);
  } catch (error) {
    // The stream has no room for them. A store must not throw into the view that opens it.
    const problem = { code: "topics.full", detail: (error as Error).message };
    for (const topic of topics) {
      const event: EventOf<"topic:refused"> = { name: "topic:refused", data: { topic, problem }, id: "" };
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

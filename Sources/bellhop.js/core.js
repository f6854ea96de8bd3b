// `connect` makes a bell, which holds the stream, the calls and the outbox, and has the features that it is given.
import * as browser from "./adapters/browser.js";
import { afterMs, calls, makeId } from "./calls.js";
import { checked, checkedTopics } from "./options.js";
import { indexedDBStorage } from "./storage/indexeddb.js";
import { outboxOf } from "./storage/keys.js";
import { memoryStorage } from "./storage/memory.js";
import { addFeatures } from "./stores/features.js";
import { listeners, report, run, systemClock } from "./stores/store.js";
import { wishes } from "./stores/wishes.js";
import { holder } from "./tabs/holder.js";
import { tokens } from "./tokens.js";
import { fetchStreams, fetchTransport } from "./transport/fetch.js";

// What features are made with: see stores/feature.js.
export { afterMs, listeners, makeId, report, run };

/** @typedef {import("./types").Options} Options */

/** The largest body that is kept for sending later; the service takes less of nearly everything. */
const bodyCharsMax = 1 << 18;

/** Connects to a service.
 * @template {Record<string, import("./types").AnyFeature>} Given
 * @param {Options & {features?: Given}} options
 * @returns {import("./types").Bell & import("./types").StoresOf<Given>} */
export function connect(options) {
  const url = checked(options);
  const { clock = systemClock, topics = [] } = options;
  /** @type {import("./types").Network} */
  const network = options.network ?? browser.network;
  /** @type {import("./types").Lifecycle} */
  const lifecycle = options.lifecycle ?? browser.lifecycle;
  const transport = transportOf(options);
  const storage = options.storage ?? (typeof indexedDB === "undefined" ? memoryStorage() : indexedDBStorage());
  const tab = makeId();
  /** @type {Set<any>} the stores */
  const attached = new Set();
  /** @type {Map<string, ReturnType<typeof listeners<any>>>} */
  const named = new Map();
  /** @type {Map<string, {resolve: (answer: any) => void, reject: (error: Error) => void, item: import("./types").Item}>}
   * writes without an answer */
  const pending = new Map();
  const wanted = wishes(tab, (want) => line?.want(want));
  const connection = value(unconnected("connecting"));
  const outbox = value({ waiting: 0 });
  /** @type {string | null} */
  let user = null;
  let isSignedIn = false;
  /** @type {any} the stream, of this tab or of all */
  let line = null;
  let lastStreamId = "";
  let order = 0;
  /** @type {Promise<any>} */
  let adding = Promise.resolve();
  let isFirst = true;
  /** Whose writes are whose: what one user sent must never be stored as another's.
   * @type {{scope: string, identity: string | null, start: () => void, started: Promise<void>}} */
  let session;
  /** @type {ReturnType<typeof tokens>} */
  let token;

  const http = calls({
    url, clock, fetch: options.fetch, clientId: makeId(),
    token: (spent) => isSignedIn ? token.get(spent) : Promise.resolve(null),
  });
  const offs = [
    network.listen((now) => void line?.network(now)),
    lifecycle.listen((foreground) => {
      line?.lifecycle(foreground);
      input({ type: "lifecycle", foreground });
    }),
    browser.listenToPage(() => stop(), () => isSignedIn && begin()),
  ];

  /** @param {any} given */
  function input(given) {
    for (const it of [...attached]) it.receive(given);
  }

  /** @param {string} name @param {any} data @param {string} [id] */
  function tell(name, data, id = "") {
    const event = { name, data, id };
    named.get(name)?.tell(event);
    named.get("*")?.tell(event);
  }

  // MARK: Who is signed in

  /** @param {string | null} [name] */
  function signIn(name = options.user ?? null) {
    leave(name);
    isSignedIn = true;
    let start = () => {};
    const started = new Promise((/** @type {(value: void) => void} */ done) => void (start = done));
    session = { scope: "", identity: null, start, started };
    const given = options.token;
    token = tokens({
      clock, user: name, provider: (wanted) => typeof given === "string" ? given : given({ fresh: wanted.fresh }),
      // The app gave another identity's token without a word: nobody's state may be seen by somebody else.
      onUser: (other) => signIn(other),
    });
    // With the new token in place: what the stores fetch now is the new user's.
    if (!isFirst) input({ type: "user", user: name, signedIn: true });
    isFirst = false;
    begin();
  }

  function signOut() {
    leave(null);
    connection.set(unconnected("closed", { code: "signed_out" }));
    input({ type: "user", user: null, signedIn: false });
  }

  /** @param {string | null} next */
  function leave(next) {
    isSignedIn = false;
    stop();
    token?.close();
    session?.start();
    // What is stored waits for its user to be back.
    for (const { reject } of pending.values()) reject(failure("outbox.signed_out", "signed out"));
    pending.clear();
    lastStreamId = "";
    user = next;
    outbox.set({ waiting: 0 });
  }

  function stop() {
    line?.close();
    line = null;
  }

  async function begin() {
    const mine = token;
    connection.set(unconnected("connecting"));
    // The identity decides which tabs share the stream, and under which names things are stored. Without a token, the last
    // identity of the user whom the app has named goes on.
    const given = await mine.get();
    if (mine !== token || !isSignedIn || line) return;
    user ??= mine.state().user;
    const last = `bellhop 2 ${url} ${user}`;
    // A token that says nothing of itself is its user's.
    const identity = mine.state().identity ??
      (user && (given ? user : await storage.get(last).catch(() => null)));
    if (mine !== token || !isSignedIn || line) return;
    if (identity && user) storage.set(last, identity).catch(() => {});
    // With a number that tells apart what does not understand each other: a worker may be older than its tabs.
    const name = `bellhop 2 ${url} ${identity}`;
    session.scope = identity ? `${name} ` : "";
    session.identity = identity;
    // New writes go behind the stored ones, whatever the clock says.
    for (const { order: at } of identity ? await outboxOf(storage, session.scope).load() : []) {
      order = Math.max(order, parseInt(at, 36));
    }
    if (mine !== token || !isSignedIn || line) return;
    const parts = {
      url, clock, transport, user, identity, scope: session.scope, fetch: options.fetch, clientId: http.clientId,
      // What belongs to nobody by name is not kept: the next one could be somebody else.
      storage: identity ? storage : memoryStorage(),
    };
    /** @type {Parameters<typeof import("./tabs/group.js").group>[0]["makeHolder"]} */
    const makeHolder = (own) => holder({
      ...parts, limits: { ...options.limits, online: network.online(), foreground: lifecycle.foreground() }, ...own,
    });
    const own = { provider: provide, emit: hear };
    /** @type {any} */
    const share = identity && options.tabs;
    line = share?.call?.(null, { options, url, user, identity, name, tab, clock, makeHolder, ...own }) ?? makeHolder(own);
    line.want(wanted.all());
    line.lifecycle(lifecycle.foreground());
    line.start();
    session.start();
    // Writes that an earlier line took before the identity was known.
    for (const { item } of pending.values()) add(item, session);

    /** @param {{spent: string | null}} wanted */
    async function provide({ spent }) {
      const given = await mine.get(spent);
      // The first token came late: now it is known whose stream this is.
      const known = mine.state().identity ?? (given && user);
      if (known && known !== identity && mine === token) {
        if (identity) signIn(user);
        else {
          stop();
          begin();
        }
        return null;
      }
      return given;
    }
  }

  // MARK: What the stream says

  /** @param {import("./types").Saying} saying @param {boolean} [isMine] */
  function hear(saying, isMine = true) {
    switch (saying.say) {
      case "event": return dispatch(saying.event);
      case "status": return noteStatus(saying.status);
      case "answered": return noteAnswer(saying.item, saying.answer, isMine);
      case "waiting": return outbox.set({ waiting: saying.count });
      case "tables": return wanted.answered(saying.answer);
    }
  }

  /** @param {import("./types").Event} event */
  function dispatch(event) {
    for (const it of [...attached]) {
      const seen = wanted.seenBy(it, event);
      if (seen) it.receive({ type: "event", event: seen });
    }
    const seen = wanted.seenBy(null, event);
    if (seen) tell(seen.name, seen.data, seen.id);
  }

  /** @param {any} status */
  function noteStatus(status) {
    const before = connection.get();
    if (!connection.set(status)) return;
    const isNew = status.streamId !== null && status.streamId !== lastStreamId;
    const reconnected = status.status === "live" && isNew && lastStreamId !== "";
    if (status.status === "live") lastStreamId = status.streamId;
    if (status.status !== before.status || reconnected) {
      input({ type: "connection", status: status.status, reconnected });
    }
  }

  /** @param {any} item @param {any} answer @param {boolean} isMine */
  function noteAnswer(item, answer, isMine) {
    const waiting = pending.get(item.key);
    pending.delete(item.key);
    const isLost = answer.status === 0;
    if (isLost) waiting?.reject(failure(answer.body.code, "unsent"));
    else waiting?.resolve(answer);
    if (!isMine) return;
    const { key, method, path, body } = item;
    const isRefused = isLost || answer.status >= 400;
    tell(isRefused ? "outbox:refused" : "outbox:sent", { key, method, path, body, answer });
  }

  // MARK: Writes

  /** @param {string} method @param {string} path @param {any} [body]
   * @param {{key?: string, headers?: Record<string, string>}} [how] @returns {Promise<any>} */
  async function send(method, path, body, how = {}) {
    const { key = makeId(), headers } = how;
    if (!isSignedIn) throw failure("outbox.signed_out", "signed out");
    if (!/^[!-~]{1,255}$/.test(key)) throw new TypeError("a key has at most 255 characters");
    if (typeof path !== "string" || path[0] !== "/") throw new TypeError(`a path begins with /, not as in "${path}"`);
    const text = JSON.stringify(body);
    if (text?.length > bodyCharsMax) throw new RangeError(`a body is longer than ${bodyCharsMax}`);
    if (pending.has(key)) throw new Error(`the key "${key}" is in use`);
    if (pending.size >= 1000) throw failure("outbox.full", "1000 writes wait");
    const item = {
      key, method, path, tab, headers, body: text === undefined ? undefined : JSON.parse(text),
      order: "",
      // While there is a stream it leaves at once, and is noted as such with the same write to the storage.
      tried: connection.get().status === "live" ? clock.now() : null,
    };
    const answer = new Promise((resolve, reject) => pending.set(key, { resolve, reject, item }));
    add(item, session);
    return answer;
  }

  /** Stores a write before it is sent, one after the other: what a tab sends keeps its order through everything.
   * @param {import("./types").Item} item @param {typeof session} mine */
  function add(item, mine) {
    const before = adding;
    adding = (async () => {
      await before;
      await mine.started;
      if (!pending.has(item.key)) return;
      item.identity = mine.identity;
      order = Math.max(order + 1, clock.now() * 1000);
      item.order ||= `${order.toString(36).padStart(11, "0")}-${tab.slice(0, 8)}`;
      if (mine.scope) await outboxOf(storage, mine.scope).put(item).catch(() => {});
      if (mine === session && isSignedIn) line?.add(item);
    })();
  }

  const bell = {
    clock,
    get user() {
      return user;
    },
    connection: connection.store,
    outbox: outbox.store,
    /** @param {string} name @param {(event: {name: string, data: any, id: string}) => void} listener */
    on(name, listener) {
      const of = named.get(name) ?? /** @type {ReturnType<typeof listeners<any>>} */ (listeners());
      const off = of.add(listener);
      named.set(name, of);
      return () => {
        off();
        if (of.size() === 0 && named.get(name) === of) named.delete(name);
      };
    },
    /** For `X-Client-Id` of the app's own writes to its backend, so that their echo is known (SCH FR-005). */
    clientId: http.clientId,
    call: http.call,
    get: (/** @type {string} */ path) => http.call("GET", path),
    send,
    /** @param {string[]} topics */
    subscribe(topics) {
      const key = {};
      wanted.set(key, { topics: checkedTopics(topics) });
      return () => void wanted.set(key, null);
    },
    /** Tries again at once what was refused, or could not be reached. */
    retry: () => void line?.open(),
    /** The app shows another of its screens: counts that are old are asked for. */
    tabSwitch: () => input({ type: "tabSwitch" }),
    signIn,
    signOut,
    close() {
      leave(null);
      connection.set(unconnected("closed"));
      for (const off of offs) off();
      for (const it of [...attached]) it.close?.();
      attached.clear();
    },

    // What the stores use: see stores/feature.js.
    limits: options.limits ?? {},
    isSignedIn: () => isSignedIn,
    isForeground: lifecycle.foreground,
    /** @param {any} it */
    attach(it) {
      attached.add(it);
      return () => void attached.delete(it);
    },
    want: wanted.set,
    tell,
    attempt: http.attempt,
    /** @param {string} method @param {string} path @param {any} body @param {any} how */
    deliver: (method, path, body, { key, headers }) => send(method, path, body, { key, headers }).catch((error) =>
      ({ status: 0, headers: {}, body: { code: error.code, detail: String(error.message) } })),
    play: (/** @type {any} */ haptic, /** @type {boolean} */ sound) => options.player?.(haptic, sound),
  };
  addFeatures(bell, options.features);
  wanted.set(bell, { topics: checkedTopics(topics) });
  signIn();
  return /** @type {any} */ (bell);
}

/** @param {Options} options @returns {import("./types").Transport} */
function transportOf({ transport = "auto", fetch }) {
  if (typeof transport === "function") return transport;
  if (["auto", "fetch"].includes(transport) && fetchStreams(fetch)) return fetchTransport(fetch);
  throw new TypeError(`connect: transport "${transport}" does not stream`);
}

/** A store of one value, the same object until it changes.
 * @template Value @param {Value} first */
function value(first) {
  let current = first;
  const changed = /** @type {ReturnType<typeof listeners<void>>} */ (listeners());
  return {
    get: () => current,
    /** @param {Value} next */
    set(next) {
      if (JSON.stringify(next) === JSON.stringify(current)) return false;
      current = next;
      changed.tell();
      return true;
    },
    store: { get: () => current, subscribe: changed.add },
  };
}

/** @param {import("./types").Status} status @returns {import("./types").Connection} */
const unconnected = (status, reason = /** @type {import("./types").Connection["reason"]} */ (null)) =>
  ({ status, tries: 0, retryAt: null, streamId: null, topics: [], reason });

/** @param {string} code @param {string} message */
const failure = (code, message) => Object.assign(new Error(message), { code });

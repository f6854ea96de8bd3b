// `connect` makes a bell: the stream, the calls, the outbox, and the given features.
import * as browser from "./adapters/browser.js";
import { afterMs, calls, checkPath, makeId } from "./calls.js";
import { checked, checkedTopics } from "./options.js";
import { indexedDBStorage } from "./storage/indexeddb.js";
import { outboxOf } from "./storage/keys.js";
import { memoryStorage } from "./storage/memory.js";
import { addFeatures } from "./stores/features.js";
import { listeners, report, run, systemClock } from "./stores/store.js";
import { wishes } from "./stores/wishes.js";
import { holder } from "./tabs/holder.js";
import { tokens } from "./tokens.js";
import { fetchTransport } from "./transport/fetch.js";

// Building blocks of features: see stores/feature.js.
export { afterMs, listeners, makeId, report, run };

/** @typedef {import("./types").Options} Options */

/** The largest body that is kept for later, in UTF-8 bytes; the service accepts less for nearly every request. */
const bodyBytesMax = 1 << 18;

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
  const transport = typeof options.transport === "function" ? options.transport : fetchTransport(options.fetch);
  const storage = options.storage ?? (typeof indexedDB === "undefined" ? memoryStorage() : indexedDBStorage());
  const tab = makeId();
  /** @type {Set<any>} the stores */
  const attached = new Set();
  /** @type {Map<string, ReturnType<typeof listeners<any>>>} */
  const named = new Map();
  /** @type {Map<string, {resolve: (answer: any) => void, reject: (error: Error) => void, item: import("./types").Item,
   *   text: string, answer: Promise<any>}>} writes without an answer */
  const pending = new Map();
  const wanted = wishes((topics) => line?.want({ topics }));
  // The code that subscribes to rows comes with the features that show rows, so other pages do not load it.
  const { tables } = Object.values(options.features ?? {}).find((feature) => feature?.tables) ?? {};
  const rows = tables?.wishes(tab, (/** @type {any} */ want) => line?.want(want));
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
  /** The owner of the writes: one user's write must never be stored as another user's.
   * @type {{scope: string, identity: string | null, start: () => void, started: Promise<void>}} */
  let session;
  /** @type {ReturnType<typeof tokens>} */
  let token;

  const nameOf = (/** @type {string | null} */ whose) => `bellhop 2 ${url} ${whose}`;
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

  // MARK: Signing in

  /** @param {string | null} [name] */
  function signIn(name = options.user ?? null) {
    leave(name);
    isSignedIn = true;
    let start = () => {};
    const started = new Promise((/** @type {(value: void) => void} */ done) => void (start = done));
    const isFirst = !session;
    session = { scope: "", identity: null, start, started };
    const given = options.token;
    token = tokens({
      clock, user: name, provider: (wanted) => typeof given === "string" ? given : given({ fresh: wanted.fresh }),
      // The app returned a token of another identity without signing in: one user must not see another user's state.
      onUser: (other) => signIn(other),
    });
    // The new token is already in place, so that the stores fetch the new user's state.
    if (!isFirst) input({ type: "user", user: name, signedIn: true });
    begin();
  }

  /** Deletes the user's stored state and returns the unsent writes to the app. */
  async function signOut() {
    const { scope } = session;
    const last = nameOf(user);
    line?.forget();
    const drafts = [...pending.values()].map(({ item }) => item);
    leave(null);
    connection.set(unconnected("closed", { code: "signed_out" }));
    input({ type: "user", user: null, signedIn: false });
    // Waits for a write that is being stored.
    await adding;
    const stored = outboxOf(storage, scope);
    const items = scope ? await stored.load() : [];
    for (const item of items) await stored.remove(item);
    await storage.remove(last).catch(() => {});
    return [...items, ...drafts.filter(({ key }) => !items.some((item) => item.key === key))];
  }

  /** @param {string | null} next */
  function leave(next) {
    isSignedIn = false;
    stop();
    token?.close();
    session?.start();
    // Stored writes wait until their user is back.
    for (const { reject } of pending.values()) reject(failure("outbox.signed_out"));
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
    // The identity decides which tabs share the stream, and it is part of the storage keys. Without a token, the last
    // known identity of the user that the app named is used.
    const given = await mine.get();
    if (mine !== token || !isSignedIn || line) return;
    user ??= mine.state().user;
    const last = nameOf(user);
    // A token without claims gets its user as the identity.
    const identity = mine.state().identity ??
      (user && (given ? user : await storage.get(last).catch(() => null)));
    if (mine !== token || !isSignedIn || line) return;
    if (identity && user) storage.set(last, identity).catch(() => {});
    const name = nameOf(identity);
    session.scope = identity ? `${name} ` : "";
    session.identity = identity;
    // New writes go behind the stored ones, whatever the clock says.
    for (const { order: at } of identity ? await outboxOf(storage, session.scope).load() : []) {
      order = Math.max(order, parseInt(at, 36));
    }
    if (mine !== token || !isSignedIn || line) return;
    const parts = {
      url, clock, transport, user, identity, scope: session.scope, fetch: options.fetch, clientId: http.clientId,
      // The state of an unknown identity is not stored: the next identity could be another user.
      storage: identity ? storage : memoryStorage(),
    };
    /** @type {Parameters<typeof import("./tabs/group.js").group>[0]["makeHolder"]} */
    const makeHolder = (own) => holder({
      ...parts, rows: tables?.line,
      limits: { ...options.limits, online: network.online(), foreground: lifecycle.foreground() }, ...own,
    });
    const own = { provider: provide, emit: hear };
    /** @type {any} */
    const share = identity && options.tabs;
    line = share?.call?.(null, { options, url, user, identity, name, tab, clock, makeHolder, ...own }) ?? makeHolder(own);
    line.want({ topics: wanted.all(), tables: rows?.all() ?? [] });
    line.lifecycle(lifecycle.foreground());
    line.start();
    session.start();
    // Writes accepted before the identity was known.
    for (const { item } of pending.values()) add(item, session);

    /** @param {{spent: string | null}} wanted */
    async function provide({ spent }) {
      const given = await mine.get(spent);
      // The first token came late: only now is the stream's identity known.
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

  // MARK: Stream events

  /** @param {import("./types").Saying} saying @param {boolean} [isMine] */
  function hear(saying, isMine = true) {
    switch (saying.say) {
      case "event": return dispatch(saying.event);
      case "status": return noteStatus(saying.status);
      case "answered": return noteAnswer(saying.item, saying.answer, isMine);
      case "waiting": return outbox.set({ waiting: saying.count });
      case "tables": return rows?.answered(saying.answer);
    }
  }

  /** @param {import("./types").Event} event */
  function dispatch(event) {
    // A tab without row subscriptions ignores the rows of other tabs.
    if (!rows && event.name === "table:change") return;
    for (const it of [...attached, null]) {
      const seen = rows ? rows.seenBy(it, event) : event;
      if (seen) it ? it.receive({ type: "event", event: seen }) : tell(seen.name, seen.data, seen.id);
    }
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
    for (const [topic, problem] of Object.entries(status.refused)) {
      if (!before.refused[topic]) dispatch({ name: "topic:refused", data: { topic, problem }, id: "" });
    }
  }

  /** @param {any} item @param {any} answer @param {boolean} isMine */
  function noteAnswer(item, answer, isMine) {
    const waiting = pending.get(item.key);
    pending.delete(item.key);
    const isLost = answer.status === 0;
    if (isLost) waiting?.reject(failure(answer.body.code));
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
    if (!isSignedIn) throw failure("outbox.signed_out");
    if (!/^[!-~]{1,255}$/.test(key)) throw new TypeError("a key has at most 255 characters");
    checkPath(path);
    if (body && new Blob([JSON.stringify(body)]).size > bodyBytesMax) throw new RangeError("a body has more than 256 KiB");
    const text = JSON.stringify({ method, path, body });
    const before = pending.get(key);
    // A write repeated before its answer counts as the same write.
    if (before?.text === text) return before.answer;
    if (before) throw new Error(`the key "${key}" is in use`);
    if (pending.size >= 1000) throw failure("outbox.full");
    const item = {
      ...JSON.parse(text), key, tab, headers, order: "",
      // While a stream is open the write is sent at once, so the same storage operation already notes the try.
      tried: connection.get().status === "live" ? clock.now() : null,
    };
    const entry = /** @type {any} */ ({ item, text });
    entry.answer = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
    pending.set(key, entry);
    add(item, session);
    return entry.answer;
  }

  /** Stores a write before it is sent. Writes are stored one at a time, so that the order of a tab is kept.
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
      named.set(name, of);
      return of.add(listener);
    },
    /** For the `X-Client-Id` of the app's own writes to its backend, so that their echoes are recognized
     * (R-SCH-FR-005). */
    clientId: http.clientId,
    call: http.call,
    get: (/** @type {string} */ path) => http.call("GET", path),
    send,
    /** @param {string[]} topics @param {(refusal: {topic: string, problem: any}) => void} [refused] */
    subscribe(topics, refused) {
      const key = {};
      wanted.set(key, checkedTopics(topics));
      const off = refused && bell.on("topic:refused", ({ data }) => topics.includes(data.topic) && refused(data));
      // Another subscriber may have requested the topic before.
      for (const topic of topics) {
        const problem = connection.get().refused[topic];
        if (problem) refused?.({ topic, problem });
      }
      return () => {
        wanted.set(key, null);
        off?.();
      };
    },
    /** Retries refused and unreachable connections immediately. */
    retry: () => void line?.open(),
    /** Reports that the app shows another of its screens: outdated counts are fetched. */
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

    // Used by the stores: see stores/feature.js.
    limits: options.limits ?? {},
    isSignedIn: () => isSignedIn,
    isForeground: lifecycle.foreground,
    /** @param {any} it */
    attach(it) {
      attached.add(it);
      return () => void attached.delete(it);
    },
    want: wanted.set,
    tables: rows,
    tell,
    attempt: http.attempt,
    /** @param {string} method @param {string} path @param {any} body @param {any} how */
    deliver: (method, path, body, { key, headers }) => send(method, path, body, { key, headers }).catch((error) =>
      ({ status: 0, headers: {}, body: { code: error.code, detail: String(error.message) } })),
    play: (/** @type {any} */ haptic, /** @type {boolean} */ sound) => options.player?.(haptic, sound),
  };
  addFeatures(bell, options.features);
  wanted.set(bell, checkedTopics(topics));
  signIn();
  return /** @type {any} */ (bell);
}

/** Makes a store of one value, which returns the same object until it changes.
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
  ({ status, tries: 0, retryAt: null, streamId: null, topics: [], reason, refused: {} });

/** Makes the error of a write that was not sent; the code gives the reason.
 * @param {string} code */
const failure = (code) => Object.assign(new Error(`not sent: ${code}`), { code });

// The holder of the stream: the only tab, the elected one, or the worker. It connects, renews the token, and sends the
// outbox. It passes events and state changes to all tabs by `emit`.
import { backgroundMs } from "../adapters/browser.js";
import { afterMs, calls } from "../calls.js";
import * as connection from "../machines/connection.js";
import * as outbox from "../machines/outbox.js";
import { outboxOf, parsed } from "../storage/keys.js";
import { run } from "../stores/store.js";
import { tokens } from "../tokens.js";
import { parser } from "../transport/sse.js";

/** @typedef {import("../types").Saying} Saying */

/** @param {import("../internal").HolderParts} parts */
export function holder({ url, clock, storage, scope, ...parts }) {
  let cursor = "";
  let stopTransport = () => {};
  let streamId = "";
  let streamToken = "";
  let isStarted = false;
  let isClosed = false;
  const emit = (/** @type {Saying} */ saying) => isClosed || parts.emit(saying);
  /** @type {Promise<any>} one change of the subscriptions after the other, or the older could win */
  let changing = Promise.resolve();

  const token = tokens({
    provider: parts.provider, clock, user: parts.user, identity: parts.identity, onRenew: renew,
    onReconnect: () => line.receive({ type: "again", attempt: line.get().attempt, fresh: true }),
  });
  const http = calls({ url, clock, fetch: parts.fetch, clientId: parts.clientId, token: token.get });
  /** @type {ReturnType<typeof run<connection.State, any>>} */
  const line = run({ initial: connection.initial, receive: connection.receive }, {
    backgroundMs: backgroundMs(), ...parts.limits, user: parts.user, identity: parts.identity,
  }, clock, performLine);
  /** @type {ReturnType<typeof run<outbox.State, any>>} */
  const box = run({ initial: outbox.initial, receive: outbox.receive }, {
    online: parts.limits?.online, restored: false, identity: parts.identity, ...parts.limits?.outbox,
  }, clock, performBox);
  /** @type {ReturnType<typeof connection.view>} */
  let shown = { ...connection.view(line.get()), status: "connecting" };
  line.onChange((state) => {
    const view = connection.view(state);
    // It was never started, so there is nothing to close.
    if (!isStarted) return;
    if (JSON.stringify(view) === JSON.stringify(shown)) return;
    const wasLive = shown.status === "live";
    shown = view;
    if (state.streamId === null) {
      token.receive({ type: "lost" });
      rows?.receive({ type: "lost" });
    }
    if (wasLive !== (view.status === "live")) box.receive({ type: "connection", status: view.status });
    emit({ say: "status", status: view });
  });
  box.onChange((state) => emit({ say: "waiting", count: state.items.length }));

  // MARK: The stream

  /** @param {any} action */
  function performLine(action) {
    switch (action.do) {
      case "connect": return void connect(action);
      case "disconnect": return disconnect();
      case "subscribe": return void subscribe(action);
    }
  }

  function disconnect() {
    stopTransport();
    stopTransport = () => {};
  }

  /** @param {{attempt: number, topics: string[], fresh: boolean}} wanted */
  async function connect({ attempt, topics, fresh }) {
    const isOld = () => isClosed || line.get().attempt !== attempt || line.get().status !== "connecting";
    const bearer = await token.get(fresh ? streamToken : null);
    if (isOld()) return;
    if (bearer === null) {
      return void line.receive({ type: "ended", attempt, ...(token.state().problem ?? { code: "token.none" }) });
    }
    streamToken = bearer;
    const since = cursor;
    const events = parser(cursor);
    let heardAt = 0;
    const query = topics.length > 0 ? `?topics=${topics.map(encodeURIComponent).join(",")}` : "";
    const headers = {
      Accept: "text/event-stream", Authorization: `Bearer ${bearer}`, ...(since ? { "Last-Event-ID": since } : {}),
    };
    /** @type {import("../types").Heard} */
    const heard = {
      async head({ status, type, retryAfter, body }) {
        if (status !== 200) {
          const problem = parsed(await body().catch(() => ""));
          const retryAfterMs = afterMs(retryAfter, clock.now());
          return void line.receive({ type: "head", attempt, status, retryAfterMs, problem });
        }
        if (type.toLowerCase().startsWith("text/event-stream")) line.receive({ type: "head", attempt, status });
        else line.receive({ type: "ended", attempt, code: "media_type", detail: `the answer is "${type}"` });
      },
      text(text) {
        if (line.get().attempt !== attempt) return;
        // One report per second is enough to show that the connection is alive.
        if (clock.now() - heardAt >= 1000) {
          heardAt = clock.now();
          line.receive({ type: "bytes", attempt });
        }
        try {
          for (const event of events.feed(text)) hear(attempt, event, since);
        } catch (error) {
          return void line.receive({ type: "ended", attempt, code: "overflow", detail: String(error) });
        }
        // Bytes cut off by a listener's reconnection are replayed on the new connection.
        if (line.get().attempt !== attempt) return;
        const retryMs = events.retryMs();
        if (retryMs !== null && retryMs !== line.get().retryMs) line.receive({ type: "retry", milliseconds: retryMs });
        if (events.lastId() !== cursor) {
          // An id without an event: nothing is delivered, but a later connection resumes from there.
          cursor = events.lastId();
          emit({ say: "cursor", id: cursor });
        }
        keepCursor();
      },
      end({ detail, isFull }) {
        line.receive(isFull ? { type: "again", attempt } : { type: "ended", attempt, code: "lost", detail });
      },
    };
    try {
      stopTransport = parts.transport(`${url}/v1/stream${query}`, headers, heard);
    } catch (error) {
      heard.end({ detail: String(error) });
    }
  }

  /** @param {number} attempt @param {import("../types").ServerSentEvent} sent @param {string} since */
  function hear(attempt, { name, data, id, hasId }, since) {
    if (line.get().attempt !== attempt) return;
    const event = { name, data: parsed(data), id: hasId ? id : "" };
    if (name === "stream:ready" && typeof event.data?.streamId === "string") {
      line.receive({ ...event.data, type: "ready", attempt });
      if (line.get().streamId === null) return;
      ({ streamId } = event.data);
      const serverTime = Date.parse(event.data.serverTime);
      token.receive({ type: "ready", streamId, token: streamToken, ...(serverTime ? { serverTime } : {}) });
      rows?.receive({ type: "ready", streamId, since });
    } else if (name === "stream:expiring") token.receive({ type: "expiring" });
    else if (name === "stream:scope") line.receive({ type: "scope" });
    else if (name === "stream:closing") line.receive({ type: "closing", attempt, ...event.data });
    cursor = id;
    emit({ say: "event", event });
  }

  /** @param {string} id @param {string} bearer */
  async function renew(id, bearer) {
    const { status } = await put(id, "token", { token: bearer });
    if (status === 200 && id === streamId) {
      streamToken = bearer;
      line.receive({ type: "scope" });
    }
    token.receive({ type: "renewed", streamId: id, token: bearer, status });
  }

  /** @param {string} id @param {string} what @param {object} body */
  const put = (id, what, body) => http.attempt("PUT", `/v1/streams/${encodeURIComponent(id)}/${what}`, body);

  /** @param {string} id @param {object} body @returns {Promise<import("../types").Answer>} */
  const change = (id, body) => (changing = changing.then(() => put(id, "subscriptions", body)));

  /** @param {{attempt: number, streamId: string, topics: string[]}} wanted */
  async function subscribe({ attempt, streamId: id, topics }) {
    const { body, ...answer } = await change(id, { topics });
    line.receive({ ...answer, type: "subscribed", attempt, asked: topics, topics: body?.topics, problem: body });
  }

  const rows = parts.rows?.({ clock, change, emit, run });

  // One write of the cursor runs at a time; positions that arrive meanwhile go into the next write.
  let isKeeping = false;
  let kept = cursor;
  async function keepCursor() {
    if (isKeeping) return;
    isKeeping = true;
    while (kept !== cursor) {
      kept = cursor;
      await storage.set(`${scope}cursor`, cursor).catch(() => {});
    }
    isKeeping = false;
  }

  // MARK: The outbox

  const waiting = outboxOf(storage, scope);
  /** The keys of the last answered writes. A concurrent read of the storage may still return them.
   * @type {string[]} */
  let done = [];

  async function load() {
    const items = await waiting.load();
    box.receive({ type: "restored", items: items.filter(({ key }) => !done.includes(key)) });
  }

  /** @param {any} action */
  function performBox(action) {
    switch (action.do) {
      case "mark":
        return void waiting.put(action.item).finally(() => box.receive({ type: "marked", item: action.item }));
      case "remove":
        done = [...done.slice(-999), action.item.key];
        return void waiting.remove(action.item);
      case "answered": return emit({ say: "answered", item: action.item, answer: action.answer });
      case "request": return void request(action.item);
    }
  }

  /** @param {import("../types").Item} item */
  async function request({ key, method, path, body, headers }) {
    const answer = await http.attempt(method, path, body, { ...headers, "Idempotency-Key": key });
    if (!isClosed) box.receive({ ...answer, type: "answer", key });
  }

  /** @param {string} [at] the last event there was; else it is read from the storage */
  async function start(at) {
    // The outbox starts first: a restart must not lose it.
    load();
    cursor = kept = at || (await storage.get(`${scope}cursor`).catch(() => null)) || "";
    isStarted = true;
    line.receive({ type: "open" });
  }

  return {
    start,
    load,
    // Replaces the topics or the tables of all tabs.
    /** @param {{topics?: string[], tables?: any[], lastEventId?: string}} wanted */
    want(wanted) {
      if (wanted.topics) line.receive({ type: "topics", topics: wanted.topics });
      if (wanted.tables) rows?.receive({ ...wanted, type: "want" });
    },
    /** @param {{online: boolean, changed?: boolean}} network */
    network(network) {
      line.receive({ type: "network", ...network });
      box.receive({ type: "network", ...network });
    },
    lifecycle: (/** @type {boolean} */ foreground) => void line.receive({ type: "lifecycle", foreground }),
    open: () => void line.receive({ type: "open" }),
    forget: () => void box.receive({ type: "forget" }),
    add: (/** @type {any} */ item) => void box.receive({ type: "add", item }),
    status: () => shown,
    close() {
      if (isClosed) return;
      isClosed = true;
      line.receive({ type: "close" });
      disconnect();
      for (const part of [line, box, token, rows]) part?.close();
    },
  };
}

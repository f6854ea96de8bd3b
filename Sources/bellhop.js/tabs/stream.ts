// The stream of a holder: it connects, resumes after the last event, renews the token, and puts the subscriptions.
import { backgroundMs } from "../adapters/browser.js";
import { afterMs, calls } from "../calls.js";
import * as connection from "../machines/connection.js";
import { parsed } from "../storage/keys.js";
import { run } from "../stores/store.js";
import { tokens } from "../tokens.js";
import { parser } from "../transport/sse.js";
import type { ConnectionAction, OpenAction, TopicsAction } from "../actions.js";
import type { HolderParts, StreamState } from "../internal.js";
import type { ConnectionInput } from "../machines/inputs.js";
import type { Answer, StreamListener, ServerSentEvent, Status, Unstamped } from "../types.js";

/** What a connection reports, without its number. */
type Report<Input = ConnectionInput> = Input extends unknown ? Omit<Input, "attempt" | "now" | "random"> : never;

/** Makes a stream that is not open yet.
 * @param onLive called when the stream becomes live, or is live no more */
export function stream(parts: HolderParts, onLive: (status: Status) => void): StreamState {
  const token = tokens({
    ...parts, onRenew: (id, bearer) => void renew(it, id, bearer),
    onReconnect: () => void line.receive({ type: "again", attempt: line.get().attempt, isFresh: true }),
  });
  const line: StreamState["line"] = run({ initial: connection.initial, receive: connection.receive }, {
    backgroundMs: backgroundMs(), ...parts.limits, user: parts.user, identity: parts.identity,
  }, parts.clock, (action: ConnectionAction) => perform(it, action));
  const it: StreamState = {
    ...parts, token, line, http: calls({ ...parts, token: token.need }), changing: Promise.resolve(), stop() {},
    shown: connection.unconnected("connecting"), cursor: "",
  };
  it.table = parts.rows?.({ ...parts, run, change: (id, body) => change(it, id, body) });
  line.onChange((state) => {
    const shown = connection.snapshot(state);
    // It was never started, so there is nothing to close.
    if (!it.isStarted || JSON.stringify(shown) === JSON.stringify(it.shown)) return;
    const wasLive = it.shown.status === "live";
    it.shown = shown;
    if (state.streamId === null) for (const part of [token, it.table]) part?.receive({ type: "lost" });
    if (wasLive !== (shown.status === "live")) onLive(shown.status);
    it.emit({ type: "status", status: shown });
  });
  return it;
}

function perform(it: StreamState, action: ConnectionAction) {
  switch (action.do) {
    case "connect": return void connect(it, action);
    case "subscribe": return void subscribe(it, action);
    case "disconnect":
      it.stop();
      it.stop = () => {};
  }
}

/** Returns a text as the value of a header whose bytes are UTF-8: the characters of such a value are bytes. */
const inUTF8 = (text: string) =>
  encodeURIComponent(text).replace(/%(..)/g, (_, byte) => String.fromCharCode(parseInt(byte, 16)));

async function connect(it: StreamState, { attempt, topics, isFresh }: OpenAction) {
  const { token, line, cursor } = it;
  const bearer = await token.get(isFresh ? it.bearer : null, it.refusal);
  if (it.isClosed || line.get().attempt !== attempt || line.get().status !== "connecting") return;
  if (bearer === null) {
    return void line.receive({ code: "token.none", ...token.state().problem, type: "ended", attempt });
  }
  it.bearer = bearer;
  const query = topics.length ? `?topics=${topics.map(encodeURIComponent).join(",")}` : "";
  const headers = {
    Accept: "text/event-stream", Authorization: `Bearer ${bearer}`, ...(cursor && { "Last-Event-ID": inUTF8(cursor) }),
  };
  const received = listener(it, attempt);
  try {
    it.stop = it.transport(`${it.url}/v1/stream${query}`, headers, received);
  } catch (error) {
    received.end({ detail: String(error) });
  }
}

/** Listens to one connection. The callbacks of a transport are not bound to an object. */
function listener(it: StreamState, attempt: number): StreamListener {
  const { line, clock, cursor: since } = it;
  const events = parser(since);
  let receivedAt = 0;
  const isOld = () => line.get().attempt !== attempt || ["refused", "closed"].includes(line.get().status);
  const report = (input: Report) => void line.receive({ ...input, attempt } as Unstamped<ConnectionInput>);

  return {
    async head({ status, type, retryAfter, body }) {
      if (status !== 200) {
        const problem = it.refusal = parsed(await body().catch(() => ""));
        return report({ type: "head", status, retryAfterMs: afterMs(retryAfter, clock.now()), problem });
      }
      if (/^text\/event-stream\s*(;|$)/i.test(type)) report({ type: "head", status });
      else report({ type: "ended", code: "media_type", detail: `the answer is "${type}"` });
    },
    text(text) {
      if (isOld()) return;
      // One report per second is enough to show that the connection is alive.
      if (clock.now() - receivedAt >= 1000) {
        receivedAt = clock.now();
        report({ type: "bytes" });
      }
      try {
        for (const event of events.feed(text)) isOld() || receiveEvent(it, event, since, report);
      } catch (error) {
        return report({ type: "ended", code: "overflow", detail: String(error) });
      }
      // Bytes cut off by a listener's reconnection are replayed on the new connection.
      if (isOld()) return;
      const milliseconds = events.retryMs();
      if (milliseconds !== null && milliseconds !== line.get().retryMs) report({ type: "retry", milliseconds });
      const id = events.lastId();
      if (id !== it.cursor) {
        // An id without an event: nothing is delivered, but a later connection resumes from there.
        it.cursor = id;
        it.emit({ type: "cursor", id });
      }
      storeCursor(it);
    },
    end: ({ detail, isFull }) => report(isFull ? { type: "again" } : { type: "ended", code: "lost", detail }),
  };
}

function receiveEvent(
  it: StreamState, { name, data, id, hasId }: ServerSentEvent, since: string, report: (input: Report) => void,
) {
  const { line, token } = it;
  const event = { name, data: parsed(data), id: hasId ? id : "" };
  if (name === "stream:ready" && typeof event.data?.streamId === "string" && Array.isArray(event.data.topics ?? [])) {
    report({ ...event.data, type: "ready" });
    if (line.get().streamId === null) return;
    const { streamId } = event.data;
    it.streamId = streamId;
    token.receive({ type: "ready", streamId, token: it.bearer as string });
    it.table?.receive({ type: "ready", streamId, since });
  } else if (name === "stream:expiring") token.receive({ type: "expiring" });
  else if (name === "stream:scope") report({ type: "scope" });
  else if (name === "stream:closing") report({ ...event.data, ...wait(event.data?.retryAfterMs), type: "closing" });
  it.cursor = id;
  it.emit({ type: "event", event });
}

/** Returns the wait that a closing stream asks for; none if it is no number. */
const wait = (retryAfterMs: unknown) => ({ retryAfterMs: typeof retryAfterMs === "number" ? retryAfterMs : 0 });

/** Stores the position of the stream. One write runs at a time; positions that arrive meanwhile go into the next write. */
async function storeCursor(it: StreamState) {
  if (it.isStoring) return;
  it.isStoring = true;
  while (it.stored !== it.cursor) {
    it.stored = it.cursor;
    await it.storage.set(`${it.scope}cursor`, it.cursor).catch(() => {});
  }
  it.isStoring = false;
}

async function renew(it: StreamState, id: string, bearer: string) {
  const { status } = await put(it, id, "token", { token: bearer });
  if (status === 200 && id === it.streamId) {
    it.bearer = bearer;
    it.line.receive({ type: "scope" });
  }
  it.token.receive({ type: "renewed", streamId: id, token: bearer, status });
}

const put = (it: StreamState, id: string, what: string, body: object) =>
  it.http.attempt("PUT", `/v1/streams/${encodeURIComponent(id)}/${what}`, body);

/** Changes the subscriptions. One change runs after the other, or the older could win. */
const change = (it: StreamState, id: string, body: object): Promise<Answer> =>
  (it.changing = it.changing.then<Answer>(() => put(it, id, "subscriptions", body)));

async function subscribe(it: StreamState, { attempt, streamId, topics }: TopicsAction) {
  const { body, ...answer } = await change(it, streamId, { topics });
  it.line.receive({ ...answer, type: "subscribed", attempt, asked: topics, topics: body?.topics, problem: body });
}

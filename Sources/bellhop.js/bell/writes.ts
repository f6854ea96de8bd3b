// The writes of a tab, from the app's call until their answer. The holder of the stream sends them.
import { checkPath, makeId } from "../calls.js";
import { outboxOf } from "../storage/keys.js";
import { publish } from "./events.js";
import type { BellState, Owner, PendingWrite, StoreBell } from "../internal.js";
import type { Answer, Item } from "../types.js";

/** The largest body that is kept for later, in UTF-8 bytes; the service accepts less for nearly every request. */
const bodyBytesMax = 1 << 18;

export async function send(
  it: BellState, method: string, path: string, body?: unknown,
  how: { key?: string; headers?: Record<string, string>; from?: Item["from"] } = {},
): Promise<Answer> {
  const { key = makeId(), headers, from } = how;
  const { pending, tab } = it;
  if (!it.isSignedIn) throw failure("outbox.signed_out");
  if (!/^[!-~]{1,255}$/.test(key)) throw new TypeError("a key has at most 255 characters");
  checkPath(path);
  if (body && new Blob([JSON.stringify(body)]).size > bodyBytesMax) throw new RangeError("a body has more than 256 KiB");
  const text = JSON.stringify({ method, path, body });
  const before = pending.get(key);
  // A write repeated before its answer counts as the same write.
  if (before?.text === text) return before.answer;
  if (before) throw new Error(`the key "${key}" is in use`);
  if (pending.size >= 1000) throw failure("outbox.full");
  const item: Item = {
    ...JSON.parse(text), key, tab, headers, from, order: "",
    // While a stream is open the write is sent at once, so the same storage operation already notes the try.
    tried: it.connection.get().status === "live" ? it.clock.now() : null,
  };
  const entry = { item, text } as PendingWrite;
  entry.answer = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
  pending.set(key, entry);
  add(it, item, it.owner);
  return entry.answer;
}

/** Sends a write of a store; status 0 if it was not sent. */
export function deliver(
  it: BellState, ...[method, path, body, { key = makeId(), headers }, of, cause]: Parameters<StoreBell["deliver"]>
) {
  const from = it.offline?.from(of, cause, key);
  return send(it, method, path, body, { key, headers, from }).catch(unsent);
}

/** Returns the answer to a write that was not sent. */
export const unsent = ({ code, message }: Error & { code?: string }): Answer =>
  ({ status: 0, headers: {}, body: { code, detail: message } });

/** Stores a write before it is sent. Writes are stored one at a time, so that the order of a tab is kept. */
export function add(it: BellState, item: Item, owner: Owner) {
  const before = it.adding;
  it.adding = (async () => {
    await before;
    await owner.started;
    if (!it.pending.has(item.key)) return;
    item.identity = owner.identity;
    it.order = Math.max(it.order + 1, it.clock.now() * 1000);
    item.order ||= `${it.order.toString(36).padStart(11, "0")}-${it.tab.slice(0, 8)}`;
    if (owner.scope) await outboxOf(it.storage, owner.scope).put(item).catch(() => {});
    if (owner === it.owner && it.isSignedIn) it.line?.add(item);
  })();
}

/** Passes the answer to the caller, and to the listeners of the app.
 * @param isMine whether this tab reports it to the app */
export function answered(it: BellState, { key, method, path, body }: Item, answer: Answer, isMine: boolean) {
  const waiting = it.pending.get(key);
  it.offline?.answered(key);
  it.pending.delete(key);
  const isLost = answer.status === 0;
  if (isLost) waiting?.reject(failure(answer.body.code));
  else waiting?.resolve(answer);
  const name = isLost || answer.status >= 400 ? "outbox:refused" : "outbox:sent";
  if (isMine) publish(it, name, { key, method, path, body, answer });
}

/** Makes the error of a write that was not sent; the code gives the reason. */
export const failure = (code: string) => Object.assign(new Error(`not sent: ${code}`), { code });

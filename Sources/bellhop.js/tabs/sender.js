// Sends the outbox of a holder.
import * as outbox from "../machines/outbox.js";
import { outboxOf } from "../storage/keys.js";
import { run } from "../stores/store.js";

/** @typedef {import("../internal").OutboxAction} OutboxAction */

/** @param {import("../internal").StreamState} stream */
export function sender({ storage, scope, clock, identity, limits, emit, http }) {
  const waiting = outboxOf(storage, scope);
  /** The keys of the last answered writes. A concurrent read of the storage may still return them.
   * @type {string[]} */
  let done = [];
  const box = run({ initial: outbox.initial, receive: outbox.receive }, {
    online: limits?.online, restored: false, identity, ...limits?.outbox,
  }, clock, perform);
  box.onChange((state) => emit({ say: "waiting", count: state.items.length }));

  /** @param {OutboxAction} action @returns {void} */
  function perform(action) {
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
    box.receive({ ...answer, type: "answer", key });
  }

  return {
    /** Adds the stored writes: those of an earlier start, and those of another page. */
    async load() {
      const items = await waiting.load();
      box.receive({ type: "restored", items: items.filter(({ key }) => !done.includes(key)) });
    },
    receive: box.receive,
    close: box.close,
  };
}

// Sends the outbox of a holder.
import * as outbox from "../machines/outbox.js";
import { outboxOf } from "../storage/keys.js";
import { run } from "../stores/store.js";
import type { OutboxAction } from "../actions.js";
import type { StreamState } from "../internal.js";
import type { Item } from "../types.js";

export function sender({ storage, scope, clock, identity, limits, emit, http }: StreamState) {
  const waiting = outboxOf(storage, scope);
  /** The keys of the last answered writes. A concurrent read of the storage may still return them. */
  let done: string[] = [];
  const box = run({ initial: outbox.initial, receive: outbox.receive }, {
    isOnline: limits?.isOnline, isRestored: false, identity, ...limits?.outbox,
  }, clock, perform);
  box.onChange((state) => emit({ type: "waiting", count: state.items.length }));

  function perform(action: OutboxAction): void {
    switch (action.do) {
      case "mark":
        return void waiting.put(action.item).finally(() => box.receive({ type: "marked", item: action.item }));
      case "remove":
        done = [...done.slice(-999), action.item.key];
        return void waiting.remove(action.item);
      case "answered": return emit({ type: "answered", item: action.item, answer: action.answer });
      case "request": return void request(action.item);
    }
  }

  async function request({ key, method, path, body, headers }: Item) {
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

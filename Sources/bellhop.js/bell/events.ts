// Delivers the events of the stream to the stores, and to the listeners of the app.
import type { BellState } from "../internal.js";
import type { BellInput, MachineEvent } from "../machines/inputs.js";
import type { Connection, Event } from "../types.js";

/** Passes an input to all stores. */
export function input(it: BellState, given: BellInput) {
  for (const store of [...it.attached]) store.receive(given);
}

/** Passes an event to the listeners of the app. */
export function publish(it: BellState, name: string, data: unknown, id = "") {
  for (const key of [name, "*"]) it.named.get(key)?.emit({ name, data, id });
}

/** Passes an event to the stores and to the app. */
export function dispatch(it: BellState, event: Event) {
  const { rows } = it;
  // A tab without row subscriptions ignores the rows of other tabs.
  if (!rows && event.name === "table:change") return;
  for (const store of [...it.attached, null]) {
    const seen = rows ? rows.seenBy(store, event) : event;
    if (!seen) continue;
    // The contract types the data of each event.
    store ? store.receive({ type: "event", event: seen as MachineEvent }) : publish(it, seen.name, seen.data, seen.id);
  }
}

/** Notes the state of the stream. */
export function note(it: BellState, state: Connection) {
  const { status, streamId, refused } = state;
  const before = it.connection.get();
  if (!it.connection.set(state)) return;
  const isLive = status === "live";
  const reconnected = isLive && it.streamId !== "" && it.streamId !== streamId;
  if (isLive) it.streamId = streamId;
  if (status !== before.status || reconnected) input(it, { type: "connection", status, reconnected });
  for (const [topic, problem] of Object.entries(refused)) {
    if (!before.refused[topic]) dispatch(it, { name: "topic:refused", data: { topic, problem }, id: "" });
  }
}

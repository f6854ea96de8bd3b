// Delivers the events of the stream to the stores, and to the listeners of the app.

/**
 * @typedef {import("../internal").BellState} BellState
 * @typedef {import("../types").Connection} Connection
 */

/** Passes an input to all stores.
 * @param {BellState} it @param {import("../types").Input} given */
export function input(it, given) {
  for (const store of [...it.attached]) store.receive(given);
}

/** Passes an event to the listeners of the app.
 * @param {BellState} it @param {string} name @param {unknown} data @param {string} [id] */
export function publish(it, name, data, id = "") {
  for (const key of [name, "*"]) it.named.get(key)?.tell({ name, data, id });
}

/** Passes an event to the stores and to the app.
 * @param {BellState} it @param {import("../types").Event} event */
export function dispatch(it, event) {
  const { rows } = it;
  // A tab without row subscriptions ignores the rows of other tabs.
  if (!rows && event.name === "table:change") return;
  for (const store of [...it.attached, null]) {
    const seen = rows ? rows.seenBy(store, event) : event;
    if (seen) store ? store.receive({ type: "event", event: seen }) : publish(it, seen.name, seen.data, seen.id);
  }
}

/** Notes the state of the stream.
 * @param {BellState} it @param {Connection} state */
export function note(it, state) {
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

// The holder of the stream: the only tab, the elected one, or the worker. It connects, renews the token, and sends the
// outbox. It passes events and state changes to all tabs by `emit`.
import { sender } from "./sender.js";
import { stream } from "./stream.js";
import type { HolderParts, StreamInterest, NetworkState } from "../internal.js";
import type { TablesInputOf } from "../machines/inputs.js";
import type { Item, Delivery, Unstamped } from "../types.js";

export function holder(given: HolderParts) {
  const emit = (delivery: Delivery) => it.isClosed ? undefined : given.emit(delivery);
  const it = stream({ ...given, emit }, (status) => void box.receive({ type: "connection", status }));
  const box = sender(it);
  const { line, token, table } = it;

  return {
    /** @param at the id of the last event; by default it is read from the storage */
    async start(at?: string) {
      // The outbox starts first: a restart must not lose it.
      box.load();
      it.cursor = it.stored = at || (await it.storage.get(`${it.scope}cursor`).catch(() => null)) || "";
      it.isStarted = true;
      line.receive({ type: "open" });
    },
    load: box.load,
    /** Replaces the topics or the tables of all tabs. */
    subscribe(interest: StreamInterest) {
      if (interest.topics) line.receive({ type: "topics", topics: interest.topics });
      if (interest.tables) table?.receive({ ...interest, type: "subscribe" } as Unstamped<TablesInputOf<"subscribe">>);
    },
    network(network: NetworkState) {
      for (const part of [line, box]) part.receive({ type: "network", ...network });
    },
    lifecycle: (foreground: boolean) => void line.receive({ type: "lifecycle", foreground }),
    open: () => void line.receive({ type: "open" }),
    forget: () => void box.receive({ type: "forget" }),
    add: (item: Item) => void box.receive({ type: "add", item }),
    status: () => it.shown,
    close() {
      if (it.isClosed) return;
      it.isClosed = true;
      line.receive({ type: "close" });
      it.stop();
      for (const part of [line, box, token, table]) part?.close();
    },
  };
}

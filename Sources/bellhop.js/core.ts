// `connect` makes a bell: the stream, the calls, the outbox, and the given features.
import * as browser from "./adapters/browser.js";
import { dispatch, input, note, publish } from "./bell/events.js";
import { begin, identifyAgain, leave, ownerOf, signIn, signOut, stop } from "./bell/session.js";
import { value } from "./bell/value.js";
import { answered, deliver, send } from "./bell/writes.js";
import { afterMs, calls, makeId } from "./calls.js";
import { unconnected } from "./machines/connection.js";
import { checked, checkedTopics } from "./options.js";
import { indexedDBStorage } from "./storage/indexeddb.js";
import { memoryStorage } from "./storage/memory.js";
import { watched } from "./storage/watched.js";
import { addFeatures } from "./stores/features.js";
import { listeners, report, run, systemClock } from "./stores/store.js";
import { subscriptions } from "./stores/subscriptions.js";
import { noToken } from "./tokens.js";
import { fetchTransport } from "./transport/fetch.js";
import type { BellState, CoreBell, RowParts, StoreBell } from "./internal.js";
import type { AnyFeature, Bell, Event, Options, Refusal, StoresOf } from "./types.js";

export type { Answer, Event } from "./contract.js";
export type { AnyFeature, Bell, Connection, Feature, KeyedFeature, Options, Status } from "./types.js";
// Building blocks of features: see stores/feature.ts.
export { afterMs, listeners, makeId, report, run };

/** Connects to a service: `connect({ url, token, features: { badges, queue } })`. */
export function connect<Given extends Record<string, AnyFeature> = {}>(
  options: Options & { features?: Given },
): Bell & StoresOf<Given> {
  const url = checked(options);
  const { clock = systemClock, topics = [], fetch, transport } = options;
  const clientId = makeId();
  const tab = makeId();
  // The code that subscribes to rows comes with the features that show rows, so other pages do not load it.
  const { tables }: { tables?: RowParts } =
    Object.values(options.features ?? {}).find((feature) => feature?.tables) ?? {};
  const it: BellState = {
    options, url, clock, fetch, clientId, tab, tables,
    user: null, isSignedIn: false, streamId: "", owner: ownerOf(), attached: new Set(), named: new Map(),
    connection: value(unconnected("connecting")), outbox: value({ waiting: 0 }), pending: new Map(), order: 0,
    network: options.network ?? browser.network, lifecycle: options.lifecycle ?? browser.lifecycle,
    transport: typeof transport === "function" ? transport : fetchTransport(fetch),
    storage: watched(
      options.storage ?? (typeof indexedDB === "undefined" ? memoryStorage() : indexedDBStorage()),
      (error) => publish(it, error ? "storage:failed" : "storage:restored", error && { detail: String(error) })),
    topics: subscriptions((topics) => it.line?.subscribe({ topics })),
    rows: tables?.subscriptions(tab, (filter) => it.line?.subscribe(filter)),
    http: calls({ url, clock, fetch, clientId, token }),
    receive(delivery, isMine = true) {
      switch (delivery.type) {
        case "event": return dispatch(it, delivery.event);
        case "status":
          if (delivery.status.reason?.code === "stream.other") identifyAgain(it);
          return note(it, delivery.status);
        case "answered": return answered(it, delivery.item, delivery.answer, isMine);
        case "waiting":
          it.outbox.set({ waiting: delivery.count });
          return void it.offline?.resume();
        case "tables": return it.rows?.answered(delivery.answer);
      }
    },
  };
  async function token(spent?: string, problem?: Refusal) {
    // What the device has kept shows before the first request.
    await it.offline?.ready;
    if (!it.isSignedIn || !it.token) throw noToken({ code: "signed_out" });
    return it.token.need(spent, problem);
  }
  const bell = bellOf(it) as unknown as StoreBell;
  it.offline = options.offline?.(it, bell);
  addFeatures(bell as StoreBell & Record<string, unknown>, options.features, it.offline);
  it.topics.set(bell, checkedTopics(topics));
  signIn(it);
  return bell as unknown as Bell & StoresOf<Given>;
}

/** Makes the object that the app and the stores use. */
function bellOf(it: BellState): CoreBell {
  const { options: { player, limits = {} }, clock, lifecycle, topics: interests, http, connection, attached, named } = it;
  const on = (name: string, listener: (event: Event) => void) => {
    const of = named.get(name) ?? listeners();
    named.set(name, of);
    return of.add(listener);
  };
  const offs = [
    it.network.listen((now) => void it.line?.network(typeof now === "boolean" ? { online: now } : now)),
    lifecycle.listen((foreground) => {
      it.line?.lifecycle(foreground);
      input(it, { type: "lifecycle", foreground });
    }),
    browser.listenToPage(() => stop(it), () => it.isSignedIn && begin(it)),
  ];
  // What `StoreBell` has beyond `Bell` is for the stores: see stores/feature.ts. `clientId` is for the
  // `X-Client-Id` of the app's own writes to its backend, so that their echoes are recognized (R-SCH-FR-005).
  return {
    ...http, clock, on, limits, url: it.url, storage: it.storage, tables: it.rows, setTopics: interests.set,
    get user() {
      return it.user;
    },
    connection: connection.store,
    outbox: it.outbox.store,
    get: (path) => http.call("GET", path),
    subscribe(topics, refused) {
      const key = {};
      interests.set(key, checkedTopics(topics));
      const off = refused && on("topic:refused", ({ data }) => topics.includes(data.topic) && refused(data));
      // Another subscriber may have requested the topic before.
      for (const topic of topics) {
        const problem = connection.get().refused[topic];
        if (problem) refused?.({ topic, problem });
      }
      return () => {
        interests.set(key, null);
        off?.();
      };
    },
    send: (...write) => send(it, ...write),
    publish: (...event) => publish(it, ...event),
    retry: () => void it.line?.open(),
    tabSwitch: () => input(it, { type: "tabSwitch" }),
    signIn: (user) => signIn(it, user),
    signOut: () => signOut(it),
    close() {
      leave(it, null);
      connection.set(unconnected("closed"));
      for (const off of offs) off();
      for (const store of [...attached]) store.close?.();
      attached.clear();
    },
    isSignedIn: () => it.isSignedIn,
    isForeground: lifecycle.foreground,
    attach(store) {
      attached.add(store);
      return () => void attached.delete(store);
    },
    deliver: (...write) => deliver(it, ...write),
    play: (...what) => player?.(...what),
  };
}

// Hooks for React 18 and later. Each shows the current state of its store without tearing, and watches the store while
// the component is mounted.

// @ts-ignore: React's types come from the app.
import * as React from "react";
import type * as features from "./features.js";
import type { Closable } from "./internal.js";
import type { Event as KnownEvent, KnownEvents, UndeclaredEvent, UndeclaredName } from "./contract.js";
import type { Bell, Connection, Row, Store } from "./types.js";

const { createContext, createElement, useContext, useEffect, useMemo, useRef, useSyncExternalStore } = React;
const Provided = createContext(null);

/** Gives a bell to the components below. Its result has the type `any`, because React's types come from the app. */
export function BellhopProvider({ bell, children }: { bell: Bell; children?: unknown }): any {
  if (typeof bell?.on !== "function") {
    throw new TypeError("BellhopProvider needs a bell: <BellhopProvider bell={connect(…)}>");
  }
  return createElement(Provided.Provider, { value: bell }, children);
}

/** The bell itself, for calls and writes. */
export function useBellhop(): Bell & features.Features {
  const bell = useContext(Provided);
  if (!bell) throw new Error("there is no <BellhopProvider> around this component");
  return bell;
}

/** Returns the state of any store. */
export function useStore<Snapshot>(store: Store<Snapshot>): Snapshot {
  return useSyncExternalStore(store.subscribe, store.get, store.get);
}

/** Returns a store's state together with its commands: `const { items, markRead } = useNotifications()`. */
function useFeature<Snapshot extends object, Made extends Store<Snapshot>>(
  store: Made & Store<Snapshot>,
): Snapshot & Omit<Made, "get" | "subscribe"> {
  const shown = useStore(store);
  return useMemo(() => {
    const { get, subscribe, isWatched, keep, close, ...commands } = store as Made & Closable;
    return { ...commands, ...shown };
  }, [store, shown]);
}

// The state of a store together with its commands. A core bell has only the features it was given.
type Refresh = { refresh(): features.Answered };

/** Null until the counts are known. */
export function useBadges(): features.Badges | null {
  return useStore(useBellhop().badges);
}

export function useConnection(): Connection {
  return useStore(useBellhop().connection);
}

export function useNotifications(): features.Notifications & features.NotificationCommands & Refresh {
  return useFeature(useBellhop().notifications);
}

export function useConversations(): features.Conversations & { more(): features.Answered } & Refresh {
  return useFeature(useBellhop().conversations);
}

export function useConversation(id: string): features.Thread & features.ThreadCommands & Refresh {
  return useFeature(useBellhop().conversation(id));
}

export function useRequests(direction?: "incoming" | "outgoing"): features.Requests & features.RequestCommands & Refresh {
  return useFeature(useBellhop().requests(direction));
}

export function useQueue(shopId: string): features.Queue & Refresh {
  return useFeature(useBellhop().queue(shopId));
}

export function useBooking(id: string): features.Booking & features.BookingCommands & Refresh {
  return useFeature(useBellhop().booking(id));
}

export function useLeaderboard(challengeId: string): features.Leaderboard & Refresh {
  return useFeature(useBellhop().leaderboard(challengeId));
}

export function useFeed(): features.Feed & features.FeedCommands & Refresh {
  return useFeature(useBellhop().feed());
}

export function useDJ(shopId: string): features.DJ & features.DJCommands & Refresh {
  return useFeature(useBellhop().dj(shopId));
}

/** Keeps the rows that this component shows up to date. Only one component per table at a time. */
export function useVisibleRows(
  table: string, ids: readonly (string | number)[], options?: features.RowOptions,
): features.VisibleRows {
  const bell = useBellhop();
  const store = options === undefined ? bell.visibleRows(table) : bell.visibleRows(table, options);
  const named = JSON.stringify(ids);
  useEffect(() => void store.show(JSON.parse(named)), [store, named]);
  useEffect(() => () => void store.stop(), [store]);
  return useStore(store);
}

/** Keeps the rows of a table that match a filter up to date, with the store's `load` and `apply`. */
export function useRows<Each extends Row = Row>(
  table: string, options: features.FilterOptions,
): features.FilteredRows<Each> & Pick<features.FilteredRowsStore<Each>, "load" | "apply"> {
  return useFeature(useBellhop().rows<Each>(table, options));
}

/** Calls `listener` with each event of a name, while the component is mounted. `*` is every name. */
export function useEvent<Name extends keyof KnownEvents>(name: Name, listener: (event: KnownEvent<Name>) => void): void;
export function useEvent(name: "*", listener: (event: KnownEvent) => void): void;
export function useEvent<Name extends string>(
  name: Name & UndeclaredName<Name>, listener: (event: UndeclaredEvent) => void,
): void;
export function useEvent(name: "*", listener: (event: KnownEvent) => void): void {
  const bell = useBellhop();
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => bell.on(name, (event) => latest.current(event)), [bell, name]);
}

/** Calls `refetch` whenever the service reports the query as stale, while the component is mounted. */
export function useInvalidation(key: readonly unknown[], refetch: (reason: string) => void): void {
  const { invalidation } = useBellhop();
  const latest = useRef(refetch);
  latest.current = refetch;
  const named = JSON.stringify(key);
  useEffect(() => {
    const { stop } = invalidation.watch(JSON.parse(named), (reason) => latest.current(reason));
    return () => void stop();
  }, [invalidation, named]);
}

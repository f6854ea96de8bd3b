// Hooks for React 18 and later. Each shows the current state of its store without tearing, and watches the store while
// the component is mounted.

// @ts-ignore: React's types come from the app.
import * as React from "react";

const { createContext, createElement, useContext, useEffect, useMemo, useRef, useSyncExternalStore } = React;
const Bell = createContext(/** @type {BellOfApp | null} */ (null));

/**
 * @typedef {import("./types").Bell & import("./features").Features} BellOfApp
 * @typedef {import("./types").Store<unknown> & import("./internal").Closable} AnyStore
 */

/** Gives a bell to the components below.
 * @param {{bell: BellOfApp, children?: unknown}} props */
export function BellhopProvider({ bell, children }) {
  if (typeof bell?.on !== "function") {
    throw new TypeError("BellhopProvider needs a bell: <BellhopProvider bell={connect(…)}>");
  }
  return createElement(Bell.Provider, { value: bell }, children);
}

/** The bell itself, for calls and writes. */
export function useBellhop() {
  const bell = useContext(Bell);
  if (!bell) throw new Error("there is no <BellhopProvider> around this component");
  return bell;
}

/** Returns the state of any store.
 * @param {AnyStore} store */
export function useStore(store) {
  return useSyncExternalStore(store.subscribe, store.get, store.get);
}

// Returns a store's state together with its commands: `const { items, markRead } = useNotifications()`.
/** @param {AnyStore} store */
function useFeature(store) {
  const shown = useStore(store);
  return useMemo(() => {
    const { get, subscribe, isWatched, keep, close, ...commands } = store;
    return { ...commands, ...shown };
  }, [store, shown]);
}

export const useBadges = () => useStore(useBellhop().badges);
export const useConnection = () => useStore(useBellhop().connection);
export const useNotifications = () => useFeature(useBellhop().notifications);
export const useConversations = () => useFeature(useBellhop().conversations);
/** @param {string} id */
export const useConversation = (id) => useFeature(useBellhop().conversation(id));
/** @param {"incoming" | "outgoing"} [direction] */
export const useRequests = (direction) => useFeature(useBellhop().requests(direction));
/** @param {string} shopId */
export const useQueue = (shopId) => useFeature(useBellhop().queue(shopId));
/** @param {string} id */
export const useBooking = (id) => useFeature(useBellhop().booking(id));
/** @param {string} challengeId */
export const useLeaderboard = (challengeId) => useFeature(useBellhop().leaderboard(challengeId));
export const useFeed = () => useFeature(useBellhop().feed());
/** @param {string} shopId */
export const useDJ = (shopId) => useFeature(useBellhop().dj(shopId));

/** Keeps the rows that this component shows up to date. Only one component per table at a time.
 * @param {string} table @param {(string | number)[]} ids
 * @param {import("./features").RowOptions} [options] as of `bell.visibleRows` */
export function useVisibleRows(table, ids, options) {
  const bell = useBellhop();
  const store = options === undefined ? bell.visibleRows(table) : bell.visibleRows(table, options);
  const named = JSON.stringify(ids);
  useEffect(() => void store.show(JSON.parse(named)), [store, named]);
  useEffect(() => () => void store.stop(), [store]);
  return useStore(store);
}

/** Calls `refetch` whenever the service reports the query as stale, while the component is mounted.
 * @param {readonly unknown[]} key @param {(reason: string) => void} refetch */
export function useInvalidation(key, refetch) {
  const { invalidation } = useBellhop();
  const latest = useRef(refetch);
  latest.current = refetch;
  const named = JSON.stringify(key);
  useEffect(() => {
    const { stop } = invalidation.watch(JSON.parse(named), (/** @type {string} */ reason) => latest.current(reason));
    return () => void stop();
  }, [invalidation, named]);
}

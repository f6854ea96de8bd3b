// Hooks of React 18 and later. Each shows its store as it is, without tearing, and watches it while the component is
// there.

// @ts-ignore: an app that has React has its types.
import * as React from "react";

const { createContext, createElement, useContext, useEffect, useMemo, useRef, useSyncExternalStore } = React;
const Bell = createContext(/** @type {any} */ (null));

/** Gives a bell to the components below.
 * @param {{bell: any, children?: any}} props */
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

/** What any store shows.
 * @param {any} store */
export function useStore(store) {
  return useSyncExternalStore(store.subscribe, store.get, store.get);
}

// What a store shows, and its commands beside it: `const { items, markRead } = useNotifications()`.
/** @param {any} store */
function useFeature(store) {
  const shown = useStore(store);
  return useMemo(() => {
    const { get, subscribe, isWatched, close, ...commands } = store;
    return { ...commands, ...shown };
  }, [store, shown]);
}

export const useBadges = () => useStore(useBellhop().badges);
export const useConnection = () => useStore(useBellhop().connection);
export const useNotifications = () => useFeature(useBellhop().notifications);
export const useConversations = () => useFeature(useBellhop().conversations);
/** @param {string} id */
export const useConversation = (id) => useFeature(useBellhop().conversation(id));
/** @param {string} shopId */
export const useQueue = (shopId) => useFeature(useBellhop().queue(shopId));
/** @param {string} id */
export const useBooking = (id) => useFeature(useBellhop().booking(id));
/** @param {string} challengeId */
export const useLeaderboard = (challengeId) => useFeature(useBellhop().leaderboard(challengeId));
export const useFeed = () => useFeature(useBellhop().feed());
/** @param {string} shopId */
export const useDJ = (shopId) => useFeature(useBellhop().dj(shopId));

/** The rows that this component shows, kept up to date; one component of a table at a time, as there is one screen.
 * @param {string} table @param {(string | number)[]} ids @param {any} [options] as of `bell.visibleRows` */
export function useVisibleRows(table, ids, options) {
  const bell = useBellhop();
  const store = options === undefined ? bell.visibleRows(table) : bell.visibleRows(table, options);
  const named = JSON.stringify(ids);
  useEffect(() => void store.show(JSON.parse(named)), [store, named]);
  useEffect(() => () => void store.stop(), [store]);
  return useStore(store);
}

/** Calls `refetch` whenever the service says that the query is stale, while the component is there.
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

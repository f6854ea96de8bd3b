// TanStack Query (4 and 5) kept fresh by Bellhop: a key that the service reports as stale invalidates every query whose
// key begins with it. While a stream is live, queries of the keys that the app names do not go stale by age.
import { isPrefix } from "./machines/invalidation.js";

/** Age in milliseconds at which data goes stale while no stream reports changes (R-SCH-NFR-003). */
const staleMs = 300_000;

/** @typedef {readonly unknown[]} Key */
/** @typedef {{meta?: {bellhop?: {table: string, recordId: string | number}}}} WithMeta */
/** @typedef {{type?: string, action?: {type: string}, mutation?: WithMeta & {options?: WithMeta}}} MutationEvent */

/**
 * Connects a QueryClient to a bell, and returns a function that disconnects it.
 * @param {import("./tanstack").QueryClientLike} queryClient a QueryClient
 * @param {import("./types").Bell & {readonly invalidation: import("./features").InvalidationStore}} bell
 * @param {{keys?: readonly (readonly unknown[])[], staleMs?: number}} [options] `keys` are the beginnings of the keys for
 *   which the service reports changes. Their queries get the bridge's `staleTime`; all other queries keep the app's own.
 * @returns {() => void}
 */
export function bridge(queryClient, bell, options) {
  const takes = "bridge takes a QueryClient and a bell";
  const methods = /** @type {const} */ (["invalidateQueries", "getQueryDefaults", "setQueryDefaults"]);
  if (!methods.every((name) => typeof queryClient?.[name] === "function")) throw new TypeError(takes);
  if (typeof bell?.on !== "function") throw new TypeError(`${takes}, made by connect()`);
  const { invalidation } = bell;
  const keys = options?.keys ?? [];
  if (!Array.isArray(keys) || !keys.every((key) => Array.isArray(key) && key.length > 0)) {
    throw new TypeError('bridge: keys are lists of key beginnings, such as [["students"], ["leaderboard"]]');
  }
  const given = keys.map((key) => queryClient.getQueryDefaults(key) ?? {});
  /** @type {number | null} */
  let set = null;

  // Only the service's keys: without a change notice, an infinite staleTime would keep other queries stale forever.
  function setStaleTime() {
    const staleTime = invalidation.get().isLive ? Infinity : options?.staleMs ?? staleMs;
    if (staleTime === set) return;
    set = staleTime;
    keys.forEach((key, index) => queryClient.setQueryDefaults(key, { ...given[index], staleTime }));
  }

  const offs = [
    invalidation.subscribe(setStaleTime),
    bell.on("query:stale", ({ data }) => {
      // Data of the previous user is removed before the queries run again.
      if (data.reason === "user") queryClient.clear?.();
      // Inactive queries are invalidated too, and fetched when they are shown. Nothing is fetched in the background.
      const refetchType = data.isForced ? "all" : data.isForeground ? "active" : "none";
      // TanStack compares the parts of keys by type, and the service sends texts: "42" has to match 42.
      const isMeant = (/** @type {Key} */ key) => data.keys.some((/** @type {Key} */ stale) => isPrefix(stale, key));
      const predicate = (/** @type {{queryKey: Key}} */ query) => isMeant(query.queryKey);
      queryClient.invalidateQueries({ predicate, refetchType });
    }),
    // A mutation names the row that it changes in `meta`, so that its echo causes no fetch.
    queryClient.getMutationCache?.().subscribe((/** @type {MutationEvent} */ event) => {
      const { mutation, type, action } = event ?? {};
      const row = (mutation?.meta ?? mutation?.options?.meta)?.bellhop;
      const isMade = type === "updated" && ["pending", "loading", "success"].includes(action?.type ?? "");
      if (row && isMade) invalidation.mutated(row.table, row.recordId);
    }),
  ];
  setStaleTime();

  return () => {
    for (const off of offs) off?.();
    keys.forEach((key, index) => queryClient.setQueryDefaults(key, given[index]));
  };
}

// TanStack Query (4 and 5) kept fresh by Bellhop: a key that the service reports as stale invalidates every query whose
// key begins with it. While a stream is live, queries of the keys that the app names do not go stale by age.
import { isPrefix } from "./machines/invalidation.js";
import type { InvalidationStore } from "./features.js";
import type { Bell } from "./types.js";

interface WithMeta {
  meta?: { bellhop?: { table: string; recordId: string | number } };
}

interface MutationEvent {
  type?: string;
  action?: { type: string };
  mutation?: WithMeta & { options?: WithMeta };
}

/** Age in milliseconds at which data goes stale while no stream reports changes (R-SCH-NFR-003). */
const staleMs = 300_000;

/** The part of TanStack's QueryClient (4 or 5) that the bridge uses. */
export interface QueryClientLike {
  invalidateQueries(filters?: unknown): unknown;
  getQueryDefaults(queryKey: readonly unknown[]): object | undefined;
  setQueryDefaults(queryKey: readonly unknown[], options: object): void;
  clear?(): void;
  getMutationCache?(): { subscribe(listener: (event: unknown) => void): () => void };
}

export interface BridgeOptions {
  /**
   * The beginnings of the keys for which the service reports changes, such as `[["students"], ["leaderboard"]]`. Their
   * queries do not go stale by age while a stream is live. All other queries keep the app's own `staleTime`.
   */
  keys?: readonly (readonly unknown[])[];
  /** Age in milliseconds at which queries of `keys` go stale without a stream: 300,000 by default. */
  staleMs?: number;
}

/**
 * Invalidates the queries that the service reports as stale. Parts of keys are compared as texts, so the service's
 * `["student", "42"]` invalidates `["student", 42]`. Returns a function that disconnects the bridge.
 */
export function bridge(
  queryClient: QueryClientLike, bell: Bell & { readonly invalidation: InvalidationStore }, options?: BridgeOptions,
): () => void {
  const takes = "bridge takes a QueryClient and a bell";
  const methods = ["invalidateQueries", "getQueryDefaults", "setQueryDefaults"] as const;
  if (!methods.every((name) => typeof queryClient?.[name] === "function")) throw new TypeError(takes);
  if (typeof bell?.on !== "function") throw new TypeError(`${takes}, made by connect()`);
  const { invalidation } = bell;
  const keys = options?.keys ?? [];
  if (!Array.isArray(keys) || !keys.every((key) => Array.isArray(key) && key.length > 0)) {
    throw new TypeError('bridge: keys are lists of key beginnings, such as [["students"], ["leaderboard"]]');
  }
  const given = keys.map((key) => queryClient.getQueryDefaults(key) ?? {});
  let set: number | null = null;

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
      const isMeant = (key: readonly unknown[]) => data.keys.some((stale) => isPrefix(stale, key));
      const predicate = (query: { queryKey: readonly unknown[] }) => isMeant(query.queryKey);
      queryClient.invalidateQueries({ predicate, refetchType });
    }),
    // A mutation names the row that it changes in `meta`, so that its echo causes no fetch.
    queryClient.getMutationCache?.().subscribe((event) => {
      const { mutation, type, action } = (event ?? {}) as MutationEvent;
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

import type { InvalidationStore } from "./features.js";
import type { Bell } from "./types.js";

/** The part of TanStack's QueryClient (4 or 5) that the bridge uses. */
export interface QueryClientLike {
  invalidateQueries(filters?: any): any;
  getQueryDefaults(queryKey: any): any;
  setQueryDefaults(queryKey: any, options: any): void;
  clear?(): void;
  getMutationCache?(): any;
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
): () => void;

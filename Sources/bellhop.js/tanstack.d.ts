import type { InvalidationStore } from "./features.js";
import type { Bell } from "./types.js";

/** What the bridge needs of TanStack's QueryClient (4 or 5). */
export interface QueryClientLike {
  invalidateQueries(filters?: any): any;
  getDefaultOptions(): any;
  setDefaultOptions(options: any): void;
  clear?(): void;
  getMutationCache?(): any;
}

/** Keeps queries fresh by what the service says is stale. Returns what takes the bridge away again. */
export function bridge(
  queryClient: QueryClientLike, bell: Bell & { readonly invalidation: InvalidationStore },
  /** How old data may become without a stream; five minutes unless told. */
  options?: { staleMs?: number },
): () => void;

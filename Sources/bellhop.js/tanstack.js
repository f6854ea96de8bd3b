// TanStack Query (4 and 5) kept fresh by Bellhop: what the service says is stale is invalidated by the beginning of
// its key, and while there is a stream nothing else goes stale.

/** As old as data may be where no stream says that it has changed (SCH NFR-003). */
const staleMs = 300_000;

/**
 * @param {any} queryClient a QueryClient
 * @param {any} bell
 * @param {{staleMs?: number}} [options] how old data may become without a stream
 * @returns {() => void} takes the bridge away again
 */
export function bridge(queryClient, bell, options) {
  if (typeof queryClient?.invalidateQueries !== "function" || typeof queryClient.setDefaultOptions !== "function") {
    throw new TypeError("bridge takes a QueryClient and a bell");
  }
  if (typeof bell?.on !== "function") throw new TypeError("bridge takes a QueryClient and a bell, made by connect()");
  const { invalidation } = bell;
  const given = queryClient.getDefaultOptions() ?? {};
  /** @type {number | null} */
  let set = null;

  // With a stream data is fresh until it is said to be stale; without one it is for five minutes, and no error is
  // shown.
  function setStaleTime() {
    const staleTime = invalidation.get().isLive ? Infinity : options?.staleMs ?? staleMs;
    if (staleTime === set) return;
    set = staleTime;
    const before = queryClient.getDefaultOptions() ?? {};
    queryClient.setDefaultOptions({ ...before, queries: { ...before.queries, staleTime } });
  }

  const offs = [
    invalidation.subscribe(setStaleTime),
    bell.on("query:stale", (/** @type {any} */ { data }) => {
      // Somebody else's data is not kept, not even while it is fetched again.
      if (data.reason === "user") queryClient.clear?.();
      // Inactive queries too: they are fetched when they are shown. Nothing is fetched in the background.
      const refetchType = data.isForced ? "all" : data.isForeground ? "active" : "none";
      for (const key of data.keys) {
        queryClient.invalidateQueries({ ...(key.length ? { queryKey: key } : {}), refetchType });
      }
    }),
    // A mutation whose `meta` says which row it changes: its own echo is no news.
    queryClient.getMutationCache?.().subscribe((/** @type {any} */ event) => {
      const { mutation, type, action } = event ?? {};
      const row = (mutation?.meta ?? mutation?.options?.meta)?.bellhop;
      const isMade = type === "updated" && ["pending", "loading", "success"].includes(action?.type);
      if (row && isMade) invalidation.mutated(row.table, row.recordId);
    }),
  ];
  setStaleTime();

  return () => {
    for (const off of offs) off?.();
    const before = queryClient.getDefaultOptions() ?? {};
    const { staleTime, ...queries } = before.queries ?? {};
    const own = given.queries?.staleTime === undefined ? {} : { staleTime: given.queries.staleTime };
    queryClient.setDefaultOptions({ ...before, queries: { ...queries, ...own } });
  };
}

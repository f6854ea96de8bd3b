import * as filteredMachine from "../machines/rows.js";
import * as invalidationMachine from "../machines/invalidation.js";
import * as rowsMachine from "../machines/visible-rows.js";
import { checkId, feature } from "./feature.js";
import { report } from "./store.js";
import { tables } from "./tables.js";
import type { Features, FilteredRowsStore, FilterOptions, InvalidationStore } from "../features.js";
import type { Closable } from "../internal.js";
import type { Feature, KeyedFeature, Row } from "../types.js";
import type { Keyed, Run } from "./feature.js";

/** `bell.visibleRows("posts", {schema: "bellhop"})`: `{ids, rows, isLive, problem}`; `rows` by id. Options: `schema`,
 * `column` of the ids, `event`, `select`. */
export const visibleRows: Keyed<"visibleRows"> = {
  isKeyed: true,
  tables,
  // Two spellings of the same table share a store.
  key: (table, options = {}) => rowsMachine.initial({ ...options, table }).table,
  make: (bell, name, options) => feature(bell, rowsMachine, { ...options, table: checkId(name, "a table") }, (
    run: Run<"visible-rows">,
  ) => ({
    /** Sets the rows that are on the screen now. Call it at every step of a scroll. */
    show(ids) {
      const isId = (id: unknown) => typeof id === "string" || Number.isSafeInteger(id);
      if (!Array.isArray(ids) || !ids.every(isId)) throw new TypeError("show takes a list of ids");
      return run({ type: "show", ids });
    },
    /** Shows the user's own write of a row at once, before its event comes: `apply({id: 7, like_count: 3})`. */
    apply: (row) => run({ type: "apply", row: checkRow(row, options?.column) }),
    pause: () => run({ type: "pause" }),
    resume: () => run({ type: "resume" }),
    stop: () => run({ type: "stop" }),
  }), ownPosts(name, options)),
};

/** Returns the events of the user's own likes and reposts, for the rows of the service's posts. */
const ownPosts = (table: string, options?: { schema?: string }) =>
  options?.schema === "bellhop" && table === "posts" ? ["post:engaged"] : [];

function checkRow<Each extends Row>(row: Each, column = "id") {
  if (["string", "number"].includes(typeof row?.[column])) return row;
  throw new TypeError(`a row has ${column}, not ${JSON.stringify(row) ?? typeof row}`);
}

/** `bell.rows("todos", {filter: "list_id=eq.7"})`: `{rows, isLive, isStale, problem}`, with `rows` by id. The filter is
 * subscribed to while the store has a listener. Options: `filter`, `schema`, `column` of the ids, `event`, `select`. The
 * caller names the type of the rows: `bell.rows<Todo>(…)`. */
export const rows: KeyedFeature<[table: string, options: FilterOptions], FilteredRowsStore<any>> = {
  isKeyed: true,
  tables,
  key: (table, options) => filteredMachine.initial({ ...options, table }).query,
  make(bell, name, options) {
    const filter = options?.filter;
    if (typeof filter !== "string" || filter === "") {
      throw new TypeError(`rows takes a filter such as "list_id=eq.7", not ${JSON.stringify(filter) ?? typeof filter}`);
    }
    return feature(bell, filteredMachine, { ...options, table: checkId(name, "a table") }, (run: Run<"rows">) => ({
      /** Replaces the rows by those that the app has fetched. Newer rows of the stream stay. */
      load(loaded) {
        const column = options.column ?? "id";
        const isRow = (row: Row) => ["string", "number"].includes(typeof row?.[column]);
        if (!Array.isArray(loaded) || !loaded.every(isRow)) throw new TypeError(`load takes a list of rows with ${column}`);
        return run({ type: "load", rows: loaded });
      },
      /** Shows the user's own write of a row at once, before its event comes. */
      apply: (row) => run({ type: "apply", row: checkRow(row, options.column) }),
    }), ownPosts(name, options));
  },
};

/** `bell.invalidation`: `{isLive, isStale, staleKeys}`. It reports the stale keys to the app by
 * `bell.on("query:stale")`, and calls the watched queries. */
export const invalidation: Feature<Features["invalidation"]> = {
  make(bell) {
    const queries = new Map<string, (reason: string) => void>();
    let count = 0;
    const off = bell.on("query:refetch", ({ data }) => {
      for (const id of data.ids) {
        try {
          queries.get(id)?.(data.reason);
        } catch (error) {
          report(error);
        }
      }
    });
    const options = { clientId: bell.clientId ?? null };
    const made: InvalidationStore & Closable = feature(bell, invalidationMachine, options, (run: Run<"invalidation">) => ({
      /** Calls `refetch` whenever the query is stale and visible; `show` and `hide` set its visibility. */
      watch(key, refetch, how) {
        const id = `query-${count += 1}`;
        const input = { type: "watch-query" as const, id, key: checkKey(key) };
        if (typeof refetch !== "function") throw new TypeError("refetch must be a function");
        queries.set(id, refetch);
        run({ ...input, isVisible: how?.isVisible ?? true });
        return {
          show: () => run({ ...input, isVisible: true }),
          hide: () => run({ ...input, isVisible: false }),
          stop() {
            queries.delete(id);
            run({ type: "unwatch-query", id });
          },
        };
      },
      /** Reports an own change of a row of the app's own database, whose echo is ignored for two seconds. It is only
       * needed if the database does not report the author by `X-Client-Id`. */
      mutated: (table, recordId) => run({ type: "mutated", table: checkId(table, "a table"), recordId }),
      /** Refetches immediately, whether or not the queries are visible and whatever made them stale.
       * @param key all queries that begin with it; every query without it */
      refetch: (key) => run({ type: "refetch", key: key === undefined ? [] : checkKey(key) }),
    }));
    return {
      ...made,
      close() {
        off();
        made.close();
      },
    };
  },
};

function checkKey(key: readonly unknown[]) {
  if (Array.isArray(key)) return key;
  throw new TypeError(`a key is a list such as ["leaderboard", "c1"], not ${JSON.stringify(key)}`);
}

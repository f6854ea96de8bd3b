import * as invalidationMachine from "../machines/invalidation.js";
import * as rowsMachine from "../machines/visible-rows.js";
import { checkId, feature } from "./feature.js";
import { report } from "../core.js";
import { tables } from "./tables.js";

/** `bell.visibleRows("posts", {schema: "bellhop"})`: `{ids, rows, isLive, problem}`; `rows` by id. Options: `schema`,
 * `column` of the ids, `event`, `select`.
 * @type {typeof import("../features").visibleRows} */
export const visibleRows = {
  isKeyed: true,
  tables,
  // The same table in another spelling is the same one.
  key: (table, options = {}) => rowsMachine.initial({ ...options, table }).what,
  /** @param {any} bell @param {string} name @param {any} [options] */
  make: (bell, name, options) => feature(bell, rowsMachine, { ...options, table: checkId(name, "a table") }, (run) => ({
    /** The rows on the screen now; call it at every step of a scroll.
     * @param {(string | number)[]} ids */
    show(ids) {
      const isId = (/** @type {any} */ id) => typeof id === "string" || Number.isSafeInteger(id);
      if (!Array.isArray(ids) || !ids.every(isId)) throw new TypeError("show takes a list of ids");
      return run({ type: "show", ids });
    },
    pause: () => run({ type: "pause" }),
    resume: () => run({ type: "resume" }),
    stop: () => run({ type: "stop" }),
  })),
};

/** `bell.invalidation`: `{isLive, isStale, staleKeys}`. It tells the app by `bell.on("query:stale")` which keys are
 * stale, and calls the queries that are watched.
 * @type {typeof import("../features").invalidation} */
export const invalidation = {
  /** @param {any} bell */
  make(bell) {
    /** @type {Map<string, (reason: string) => void>} */
    const queries = new Map();
    let count = 0;
    const off = bell.on("query:refetch", (/** @type {any} */ { data }) => {
      for (const id of data.ids) {
        try {
          queries.get(id)?.(data.reason);
        } catch (error) {
          report(error);
        }
      }
    });
    const made = feature(bell, invalidationMachine, { clientId: bell.clientId ?? null }, (run) => ({
      /** Calls `refetch` whenever the query is stale and visible; `show` and `hide` say whether it is.
       * @param {readonly unknown[]} key @param {(reason: string) => void} refetch
       * @param {{isVisible?: boolean}} [how] */
      watch(key, refetch, how) {
        const id = `query-${count += 1}`;
        const input = { type: "watch-query", id, key: checkKey(key) };
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
      /** An own change of a row of the app's own database: its echo within two seconds is no news, where the database
       * does not say whose it was. Where it does, by `X-Client-Id`, this is not needed.
       * @param {string} table @param {string | number} recordId */
      mutated: (table, recordId) => run({ type: "mutated", table: checkId(table, "a table"), recordId }),
      /** At once, whatever is visible and whoever made it stale.
       * @param {readonly unknown[]} [key] all queries that begin with it; every query without it */
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

/** @param {any} key */
function checkKey(key) {
  if (Array.isArray(key)) return key;
  throw new TypeError(`a key is a list such as ["leaderboard", "c1"], not ${JSON.stringify(key)}`);
}

// What all stores of a tab want of the stream, as one: their topics together, and their tables under names that no two
// stores share.

/** As many topics as a stream may have (`stream.topicsMax` of /v1/config). */
const topicsMax = 100;

/** @param {string} tab @param {(want: {topics: string[], tables: any[], lastEventId?: string}) => void} changed */
export function wishes(tab, changed) {
  /** @type {Map<any, {prefix: string, topics?: string[], tables?: any[], resolve?: (answer: any) => void}>} */
  const all = new Map();
  let count = 0;

  function union() {
    const wants = [...all.values()];
    return {
      topics: [...new Set(wants.flatMap(({ topics = [] }) => topics))],
      tables: wants.flatMap(({ prefix, tables = [] }) => tables.map((table) => ({ ...table, id: prefix + table.id }))),
    };
  }

  return {
    all: union,
    /** The topics or tables of one store, in place of its own before; null: none of both. The promise is that of the
     * answer to the tables.
     * @param {any} of @param {{topics?: string[], tables?: any[], lastEventId?: string} | null} want
     * @returns {Promise<any>} */
    set(of, want) {
      const before = all.get(of);
      const others = new Set([...all].filter(([key]) => key !== of).flatMap(([, { topics = [] }]) => topics));
      if (new Set([...others, ...(want?.topics ?? [])]).size > topicsMax) {
        throw new RangeError(`a stream has at most ${topicsMax} topics`);
      }
      const superseded = { status: 0, headers: {}, body: { code: "tables.superseded" } };
      if (want === null || want.tables) before?.resolve?.(superseded);
      return new Promise((resolve) => {
        if (want === null) {
          all.delete(of);
          resolve(superseded);
        } else {
          const prefix = before?.prefix ?? `${tab.slice(0, 8)}${(count += 1).toString(36)}.`;
          const { topics = before?.topics, tables = before?.tables } = want;
          all.set(of, { topics, tables, prefix, resolve: want.tables ? resolve : before?.resolve });
          if (!want.tables) resolve(null);
        }
        const { lastEventId } = want ?? {};
        if (want !== null || before) changed({ ...union(), ...(lastEventId ? { lastEventId } : {}) });
      });
    },
    /** @param {any} answer */
    answered(answer) {
      for (const [of, want] of all) {
        want.resolve?.(answer);
        all.set(of, { ...want, resolve: undefined });
      }
    },
    /** An event as a store sees it, with the names that it gave; null where it is of another's table. `of: null` is the
     * app, which sees what is of any of this tab's.
     * @param {any} of @param {{name: string, data: any, id: string}} event */
    seenBy(of, event) {
      const ids = event.data?.subscriptionIds;
      if (event.name !== "table:change" || !Array.isArray(ids)) return event;
      const prefixes = of === null ? [...all.values()].map(({ prefix }) => prefix) : [all.get(of)?.prefix ?? "\n"];
      const own = ids.flatMap((id) => {
        const prefix = prefixes.find((known) => id.startsWith(known));
        return prefix === undefined ? [] : [id.slice(prefix.length)];
      });
      return own.length === 0 ? null : { ...event, data: { ...event.data, subscriptionIds: own } };
    },
  };
}

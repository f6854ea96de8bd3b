// Row subscriptions: only pages that show rows need them, so the core has them from the feature that does.
import * as machine from "../machines/tables.js";

/** The tables of all stores of a tab as one, under names that no two stores share.
 * @param {string} tab @param {(want: {tables: any[], lastEventId?: string}) => void} changed */
export function tableWishes(tab, changed) {
  /** @type {Map<any, {prefix: string, tables: any[], resolve?: (answer: any) => void}>} */
  const all = new Map();
  let count = 0;
  const superseded = { status: 0, headers: {}, body: { code: "tables.superseded" } };
  const union = () => [...all.values()].flatMap(({ prefix, tables }) =>
    tables.map((table) => ({ ...table, id: prefix + table.id })));

  return {
    all: union,
    /** The tables of one store, in place of its own before; null: none. The promise is that of the answer to them.
     * @param {any} of @param {{tables: any[], lastEventId?: string} | null} want @returns {Promise<any>} */
    set(of, want) {
      const before = all.get(of);
      before?.resolve?.(superseded);
      return new Promise((resolve) => {
        if (want === null) {
          all.delete(of);
          resolve(superseded);
          if (!before) return;
        } else {
          const prefix = before?.prefix ?? `${tab.slice(0, 8)}${(count += 1).toString(36)}.`;
          all.set(of, { prefix, tables: want.tables, resolve });
        }
        const { lastEventId } = want ?? {};
        changed({ tables: union(), ...(lastEventId ? { lastEventId } : {}) });
      });
    },
    /** Each store hears of its own tables.
     * @param {{status: number, body: any, refused: Record<string, any>}} answer */
    answered({ status, body, refused }) {
      for (const [of, want] of all) {
        const problem = want.tables.map(({ id }) => refused[want.prefix + id]).find(Boolean);
        want.resolve?.(problem ? { status: problem.status, headers: {}, body: problem } : { status, headers: {}, body });
        all.set(of, { ...want, resolve: undefined });
      }
    },
    /** An event as a store sees it, with the names that it gave; null where it is of another's table. `of: null` is the
     * app, which sees what is of any of this tab's.
     * @param {any} of @param {{name: string, data: any, id: string}} event */
    seenBy(of, event) {
      const wants = [...all].filter(([key]) => of === null || key === of);
      return machine.seen(wants.map(([, { prefix }]) => prefix), event);
    },
  };
}

/** The tables of one stream, where the stream is.
 * @type {import("../internal").RowLine} */
export function tableLine({ clock, change, emit, run }) {
  const it = run(machine, undefined, clock, perform);

  /** @param {any} action */
  async function perform({ do: what, streamId, count, tables, lastEventId, ...answer }) {
    if (what === "answered") return emit({ say: "tables", answer });
    const given = await change(streamId, { tables, ...(lastEventId ? { lastEventId } : {}) });
    it.receive({ ...given, type: "answer", count });
  }

  return { receive: it.receive, close: it.close };
}

/** What a feature that shows rows brings to the core. */
export const tables = { wishes: tableWishes, line: tableLine };

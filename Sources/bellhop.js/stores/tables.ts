// Row subscriptions. Only pages that show rows need them, so the features that show rows bring them to the core.
import * as machine from "../machines/tables.js";
import type { TablesAction } from "../actions.js";
import type { RowLine, RowLineParts, TablesAnswer, TablesFilter, WantedTable } from "../internal.js";
import type { Answer, Event } from "../types.js";

/** Combines the tables of all stores of a tab, under ids that no two stores share. */
function tableSubscriptions(tab: string, changed: (filter: TablesFilter) => void) {
  const all = new Map<object, { prefix: string; tables: WantedTable[]; resolve?: (answer: Answer) => void }>();
  let count = 0;
  const superseded = { status: 0, headers: {}, body: { code: "tables.superseded" } };
  const union = () => [...all.values()].flatMap(({ prefix, tables }) =>
    tables.map((table) => ({ ...table, id: prefix + table.id })));

  return {
    all: union,
    /** Replaces the tables of one store; null removes them. Resolves with the answer to them. */
    set(of: object, filter: TablesFilter | null): Promise<Answer> {
      const before = all.get(of);
      before?.resolve?.(superseded);
      return new Promise((resolve) => {
        if (filter === null) {
          all.delete(of);
          resolve(superseded);
          if (!before) return;
        } else {
          const prefix = before?.prefix ?? `${tab.slice(0, 8)}${(count += 1).toString(36)}.`;
          all.set(of, { prefix, tables: filter.tables, resolve });
        }
        const { lastEventId } = filter ?? {};
        changed({ tables: union(), ...(lastEventId ? { lastEventId } : {}) });
      });
    },
    /** Gives each store the answer to its own tables. */
    answered({ status, body, refused }: TablesAnswer) {
      for (const [of, filter] of all) {
        const problem = filter.tables.map(({ id }) => refused[filter.prefix + id]).find(Boolean);
        filter.resolve?.(problem ? { status: problem.status, headers: {}, body: problem } : { status, headers: {}, body });
        all.set(of, { ...filter, resolve: undefined });
      }
    },
    /** Returns an event with the ids that the store chose; null if it concerns another store's table. `of: null` is
     * the app, which receives the events of all stores of this tab. */
    seenBy(of: object | null, event: Event) {
      const own = [...all].filter(([key]) => of === null || key === of);
      return machine.seen(own.map(([, { prefix }]) => prefix), event);
    },
  };
}

/** The tables of one stream, run by the holder of the stream. */
export function tableLine({ clock, change, emit, run }: RowLineParts): ReturnType<RowLine> {
  const it = run(machine, undefined, clock, perform);

  async function perform(action: TablesAction) {
    if (action.do === "answered") {
      const { status, body, refused } = action;
      return emit({ type: "tables", answer: { status, body, refused } });
    }
    if (action.do !== "put") return;
    const { streamId, count, tables, lastEventId } = action;
    const given = await change(streamId, { tables, ...(lastEventId ? { lastEventId } : {}) });
    it.receive({ ...given, type: "answer", count });
  }

  return { receive: it.receive, close: it.close };
}

/** The part that a feature with rows brings to the core. */
export const tables = { subscriptions: tableSubscriptions, line: tableLine };

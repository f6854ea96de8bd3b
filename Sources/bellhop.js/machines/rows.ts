// The rows of a table that match a filter, kept up to date while a screen watches them. The app fetches the rows from
// its own backend and loads them here. Rows of events win over loaded rows: an answer may be older than an event that
// arrived meanwhile, and a later change comes as another event.
import { answered, change, connect, leave, note, place, updated } from "./filters.js";
import { same } from "./same.js";
import type { Outcome } from "../actions.js";
import type { Row } from "../types.js";
import type { FilterState } from "./filters.js";
import type { InputOf, MachineEvent } from "./inputs.js";

interface What {
  schema: string;
  table: string;
  filter: string;
  event: string;
  column: string;
  select: string[] | null;
}

/** `changed`: the rows that events have changed or removed since the last gap. */
export interface State extends FilterState {
  query: What;
  changed: Record<string, true>;
  isWatched: boolean;
  isStale: boolean;
  isPlaced: boolean;
}

type Result = Outcome<State>;

export function initial(
  { schema = "public", table = "", filter = "", event = "*", column = "id", select = null }: Partial<What>,
): State {
  const columns = select && (select.includes(column) ? select : [column, ...select]);
  return {
    query: { schema, table, filter, event, column, select: columns }, rows: {}, changed: {}, isWatched: false,
    isForeground: true, isPut: false, isStale: false, problem: null, isPlaced: false, lastEventId: null, since: null,
    failures: 0,
  };
}

export const snapshot = ({ rows, isPut, isStale, problem }: State) => ({ rows, isLive: isPut, isStale, problem });

export function receive(state: State, input: InputOf<"rows">): Result {
  const made = own(state, input);
  return { state: same(state, made.state), actions: made.actions };
}

function own(state: State, input: InputOf<"rows">): Result {
  switch (input.type) {
    case "watch": return put(input.watched ? { ...state, isWatched: true } : leave({ ...state, isWatched: false }));
    case "lifecycle":
      return put(input.foreground ? { ...state, isForeground: true } : leave({ ...state, isForeground: false }));
    case "connection": return { state: connect(state, input), actions: [] };
    case "restore": return { state: restore(state, input.kept as Pick<State, "rows" | "since">), actions: [] };
    case "apply": return { state: apply(state, input.row), actions: [] };
    case "load": return { state: load(state, input.rows), actions: [] };
    case "user": {
      const { query, isWatched, isForeground, isPlaced } = state;
      return { state: { ...initial(query), isWatched, isForeground, isPlaced }, actions: [] };
    }
    case "timer": return put(state, true);
    case "event": return handle(state, input.event);
    case "answer": return input.as === "tables" ? answered(state, input, state.isPlaced) : { state, actions: [] };
  }
  return { state, actions: [] };
}

/** Returns what the device keeps for the next start; null for nothing. */
export const kept = ({ rows, since, lastEventId }: State) =>
  Object.keys(rows).length ? { rows, since: since ?? lastEventId } : null;

/** Shows the rows of the last start until the app loads them. Changes since then come when the filter is put. */
function restore(state: State, { rows, since }: Pick<State, "rows" | "since">): State {
  return Object.keys(state.rows).length || state.isPut ? state : { ...state, rows, since, isStale: true };
}

function put(state: State, isForced = false): Result {
  const isPlaced = state.isWatched && state.isForeground;
  if (isPlaced === state.isPlaced && !(isForced && isPlaced)) return { state, actions: [] };
  const { schema, table, filter, event, select } = state.query;
  const tables = isPlaced ? [{ id: "rows", schema, table, event, filter, ...(select ? { select } : {}) }] : [];
  return { state: { ...state, isPlaced, isPut: false }, actions: [place(state, tables)] };
}

function load(state: State, loaded: readonly Row[]): State {
  const rows: Record<string, Row> = {};
  for (const row of loaded) {
    const key = String(row[state.query.column]);
    // A row that an event has removed stays removed.
    if (!state.changed[key]) rows[key] = row;
    else if (key in state.rows) rows[key] = { ...row, ...state.rows[key] };
  }
  for (const key of Object.keys(state.changed)) if (key in state.rows) rows[key] ??= state.rows[key];
  return { ...state, rows, isStale: false };
}

/** Shows the user's own write before its event comes. */
function apply(state: State, row: Row): State {
  const key = String(row[state.query.column]);
  return { ...state, rows: { ...state.rows, [key]: { ...state.rows[key], ...row } } };
}

function handle(state: State, event: MachineEvent): Result {
  const { name, data } = event;
  const next = note(state, event, state.isPlaced);
  switch (name) {
    case "stream:ready": return state.isPlaced ? put(next, true) : { state: next, actions: [] };
    case "stream:resync": return { state: { ...next, isStale: true, changed: {}, since: null }, actions: [] };
    // Of the service, or of the user's own likes.
    case "post:engaged": case "engagement_update":
      return { state: { ...next, rows: updated(next.rows, data.updates, (key) => key in next.rows) }, actions: [] };
    case "table:change": {
      const key = (data.record ?? data.oldRecord)?.[state.query.column] as string | null | undefined;
      if (key === undefined || key === null || !data.subscriptionIds.includes("rows")) break;
      const rows = change(next.rows, key, data);
      return { state: { ...next, rows, changed: { ...next.changed, [key]: true } }, actions: [] };
    }
  }
  return { state: next, actions: [] };
}

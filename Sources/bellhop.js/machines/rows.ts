// The rows of a table that match a filter, kept up to date while a screen watches them. The app fetches the rows from
// its own backend and loads them here. Rows of events win over loaded rows: an answer may be older than an event that
// arrived meanwhile, and a later change comes as another event.
import { isFinal, isTaken, problemOf, waitMs } from "./loading.js";
import { same } from "./same.js";
import type { Outcome } from "../actions.js";
import type { Problem } from "../features.js";
import type { Row } from "../types.js";
import type { InputOf, MachineEvent, StoreInputOf } from "./inputs.js";

interface What {
  schema: string;
  table: string;
  filter: string;
  event: string;
  column: string;
  select: string[] | null;
}

/** `changed`: the rows that events have changed or removed since the last gap. */
export interface State {
  query: What;
  rows: Record<string, Row>;
  changed: Record<string, true>;
  isWatched: boolean;
  isForeground: boolean;
  isPut: boolean;
  isStale: boolean;
  problem: Problem | null;
  isPlaced: boolean;
  lastEventId: string | null;
  since: string | null;
  failures: number;
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
    case "connection":
      return { state: input.status === "live" ? state : leave({ ...state, isPut: false }), actions: [] };
    case "restore": return { state: restore(state, input.kept as Pick<State, "rows" | "since">), actions: [] };
    case "apply": return { state: apply(state, input.row), actions: [] };
    case "load": return { state: load(state, input.rows), actions: [] };
    case "user": {
      const { query, isWatched, isForeground, isPlaced } = state;
      return { state: { ...initial(query), isWatched, isForeground, isPlaced }, actions: [] };
    }
    case "timer": return put(state, true);
    case "event": return handle(state, input.event);
    case "answer": return input.as === "tables" ? answered(state, input) : { state, actions: [] };
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
  const missed = isPlaced && state.since ? { lastEventId: state.since } : {};
  return { state: { ...state, isPlaced, isPut: false }, actions: [{ do: "tables", tables, as: "tables", ...missed }] };
}

/** Notes the last event; changes after it are requested when the filter is put again. */
function leave(state: State): State {
  return { ...state, since: state.since ?? state.lastEventId };
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

function handle(state: State, { name, data, id }: MachineEvent): Result {
  const next = id ? { ...state, lastEventId: id } : state;
  switch (name) {
    // A new stream has no tables.
    case "stream:ready":
      return state.isPlaced ? put({ ...next, since: leave(state).since }, true) : { state: next, actions: [] };
    case "stream:resync": return { state: { ...next, isStale: true, changed: {}, since: null }, actions: [] };
    // Of the service, or of the user's own likes.
    case "post:engaged": case "engagement_update":
      return { state: { ...next, rows: updated(next, data.updates) }, actions: [] };
    case "table:change": {
      const key = (data.record ?? data.oldRecord)?.[state.query.column] as string | null | undefined;
      if (key === undefined || key === null || !data.subscriptionIds.includes("rows")) break;
      const { [key]: before, ...others } = next.rows;
      const rows = data.record ? { ...others, [key]: { ...before, ...data.record } } : others;
      return { state: { ...next, rows, changed: { ...next.changed, [key]: true } }, actions: [] };
    }
  }
  return { state: next, actions: [] };
}

function updated({ rows }: State, updates: Record<string, Row>) {
  const known = Object.entries(updates).filter(([key]) => key in rows);
  if (known.length === 0) return rows;
  return { ...rows, ...Object.fromEntries(known.map(([key, counts]) => [key, { ...rows[key], ...counts }])) };
}

function answered(state: State, input: StoreInputOf<"answer">): Result {
  const { status, body } = input;
  if (isTaken(status)) {
    const isPut = state.isPlaced;
    return { state: { ...state, isPut, since: isPut ? null : state.since, failures: 0, problem: null }, actions: [] };
  }
  // The stream is gone: the filter is put on the next one.
  if (status === 0 || status === 404) return { state: { ...state, isPut: false }, actions: [] };
  const problem = { ...problemOf(input), ...(body?.pointer ? { pointer: body.pointer } : {}) };
  if (isFinal(status)) return { state: { ...state, problem }, actions: [] };
  const failures = state.failures + 1;
  const at = input.now + waitMs(failures, input.headers);
  return { state: { ...state, problem, failures }, actions: [{ do: "timer", name: "retry", at }] };
}

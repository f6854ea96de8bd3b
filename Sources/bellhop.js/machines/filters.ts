// The filters on rows that a store has put on the stream: whether the service has accepted them, and which changes were
// missed.
import { isFinal, isTaken, problemOf, waitMs } from "./loading.js";
import type { Outcome, StoreAction } from "../actions.js";
import type { Problem } from "../features.js";
import type { Row } from "../types.js";
import type { EventOf, MachineEvent, StoreInputOf } from "./inputs.js";

/** `isPut`: the service has accepted the filters; `since`: the event after which changes were missed. */
export interface FilterState {
  rows: Record<string, Row>;
  isForeground: boolean;
  isPut: boolean;
  problem: Problem | null;
  lastEventId: string | null;
  since: string | null;
  failures: number;
}

/** Notes the last event; changes after it are requested when the filters are put again. */
export function leave<State extends FilterState>(state: State): State {
  return { ...state, since: state.since ?? state.lastEventId };
}

/** Notes that the stream is live, or that it is gone. */
export function connect<State extends FilterState>(state: State, { status }: StoreInputOf<"connection">): State {
  return status === "live" ? state : leave({ ...state, isPut: false });
}

/** Notes an event. A new stream has no filters, so placed ones have missed changes. */
export function note<State extends FilterState>(state: State, { name, id }: MachineEvent, isPlaced: boolean): State {
  const next = id ? { ...state, lastEventId: id } : state;
  return name === "stream:ready" && isPlaced ? { ...next, since: leave(state).since } : next;
}

export function place({ since }: FilterState, tables: Extract<StoreAction, { do: "tables" }>["tables"]): StoreAction {
  return { do: "tables", tables, as: "tables", ...(since && tables.length ? { lastEventId: since } : {}) };
}

/** Returns the rows with a change of one of them. */
export function change(rows: Record<string, Row>, key: string, { record }: EventOf<"table:change">["data"]) {
  const { [key]: before, ...others } = rows;
  return record ? { ...others, [key]: { ...before, ...record } } : others;
}

/** Returns the rows with new members of those that are shown. */
export function updated(
  rows: Record<string, Row>, updates: Record<string, Row>, isShown: (key: string) => boolean,
): Record<string, Row> {
  const known = Object.entries(updates).filter(([key]) => isShown(key));
  if (known.length === 0) return rows;
  return { ...rows, ...Object.fromEntries(known.map(([key, members]) => [key, { ...rows[key], ...members }])) };
}

/** Takes the answer to the filters. */
export function answered<State extends FilterState>(
  state: State, input: StoreInputOf<"answer">, isPlaced: boolean,
): Outcome<State> {
  const { status, body, now, headers } = input;
  if (isTaken(status)) {
    const since = isPlaced ? null : state.since;
    return { state: { ...state, isPut: isPlaced, since, failures: 0, problem: null }, actions: [] };
  }
  // The stream is gone: the filters are put on the next one.
  if (status === 0 || status === 404) return { state: { ...state, isPut: false }, actions: [] };
  const problem = { ...problemOf(input), ...(body?.pointer ? { pointer: body.pointer } : {}) };
  if (isFinal(status)) return { state: { ...state, problem }, actions: [] };
  const failures = state.failures + 1;
  const at = now + waitMs(failures, headers);
  return { state: { ...state, problem, failures }, actions: [{ do: "timer", name: "retry", at }] };
}

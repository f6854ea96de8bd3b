// The row subscriptions of a stream. They are put again on each new stream and when they change. Refused tables are
// left out, so that one wrong table does not block the others. Each owner learns the result for its own tables.
import type { Outcome, TablesAction, TimerAction } from "../actions.js";
import type { Problem } from "../features.js";
import type { JSONValue } from "../types.js";
import type { ProblemBody, Table, TablesInput, TablesInputOf } from "./inputs.js";

type Body = ProblemBody | null | undefined;

/** `taken`: those that the present stream has. */
export interface State {
  streamId: string | null;
  tables: Table[];
  since: string | null;
  taken: Table[];
  refused: Record<string, { table: Table; problem: Problem }>;
  asked: Table[] | null;
  count: number;
  limit: number | null;
  answer: { status: number; body: Body } | null;
}

type Result = Outcome<State, TablesAction>;

/** Delay between two tries, if the service could not answer. */
const againMs = 5000;

export const initial = (): State => ({
  streamId: null, tables: [], since: null, taken: [], refused: {}, asked: null, count: 0, limit: null, answer: null,
});

export function receive(state: State, input: TablesInput): Result {
  switch (input.type) {
    case "subscribe": return subscribe(state, input);
    // A new stream has no tables, and may accept tables that the previous one refused.
    case "ready": {
      const { streamId, since = null } = input;
      const next = { ...initial(), streamId, since: since || null, tables: state.tables, count: state.count };
      return state.tables.length > 0 ? put(next) : { state: next, actions: [] };
    }
    case "lost": return { state: { ...state, streamId: null, asked: null }, actions: [timer(null)] };
    case "timer": return put(state);
    case "answer": return input.count === state.count && state.asked ? answered(state, input) : { state, actions: [] };
    case "seen": return { state, actions: [{ do: "seen", event: seen(input.prefixes, input.event) }] };
    default: return { state, actions: [] };
  }
}

/** Returns an event with the ids that the owner of these prefixes chose; null if it concerns other tables. */
export function seen<One extends { name: string; data: JSONValue }>(prefixes: string[], event: One): One | null {
  const ids = event.data?.subscriptionIds;
  if (event.name !== "table:change" || !Array.isArray(ids)) return event;
  const own = ids.flatMap((id) => {
    const prefix = prefixes.find((known) => id.startsWith(known));
    return prefix === undefined ? [] : [id.slice(prefix.length)];
  });
  return own.length === 0 ? null : { ...event, data: { ...event.data, subscriptionIds: own } };
}

const timer = (at: number | null): TimerAction => ({ do: "timer", name: "tables", at });

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

function subscribe(state: State, { tables, lastEventId = null }: TablesInputOf<"subscribe">): Result {
  // If the stream already has these tables, the stored answer is returned.
  if (isSame(tables, state.tables)) return { state, actions: state.answer ? [outcome(state, state.answer)] : [] };
  const refused = Object.fromEntries(Object.entries(state.refused).filter(([id, { table }]) =>
    tables.some((one: Table) => one.id === id && isSame(one, table))));
  // Changes that an unanswered earlier put asked for are still missed.
  const since = state.answer ? lastEventId : state.since ?? lastEventId;
  const next = { ...state, tables, refused, since, limit: null, answer: null };
  return state.streamId === null ? { state: { ...next, since: null }, actions: [] } : put(next);
}

/** Returns the tables that are not refused. */
const left = ({ tables, refused }: State): Table[] => tables.filter(({ id }) => !refused[id]);

const isTaken = ({ taken }: State, table: Table) => taken.some((one) => isSame(one, table));

function put(state: State): Result {
  if (state.streamId === null) return { state, actions: [] };
  let room = state.limit ?? Infinity;
  const asked = left(state).filter((table) => isTaken(state, table) || room-- > 0);
  if (isSame(asked, state.taken) && (asked.length === 0 || state.since === null)) return finish(state, 200, null);
  const next = { ...state, asked, count: state.count + 1 };
  const missed = state.since && asked.length > 0 ? { lastEventId: state.since } : {};
  const action: TablesAction = { do: "put", streamId: state.streamId, count: next.count, tables: asked, ...missed };
  return { state: next, actions: [timer(null), action] };
}

function finish(state: State, status: number, body: Body): Result {
  const answer = { status, body };
  const next = { ...state, asked: null, limit: null, answer, since: status === 200 ? null : state.since };
  return { state: next, actions: [outcome(next, answer)] };
}

function outcome(state: State, { status, body }: { status: number; body: Body }): TablesAction {
  const refused = Object.fromEntries(Object.entries(state.refused).map(([id, { problem }]) => [id, problem]));
  return { do: "answered", status, body, refused };
}

function answered(state: State, { now, status, body, retryAfterMs = 0 }: TablesInputOf<"answer">): Result {
  const asked = state.asked ?? [];
  const idle = { ...state, asked: null };
  if (status === 0 || status >= 500 || status === 429) {
    return { state: idle, actions: [timer(now + Math.max(againMs, retryAfterMs))] };
  }
  if (status === 200) {
    const next = { ...idle, taken: asked, limit: state.limit && state.limit * 2 };
    return asked.length < left(next).length ? put(next) : finish(next, status, body);
  }
  return [400, 403, 413, 422].includes(status) ? without(idle, asked, status, body) : finish(idle, status, body);
}

/** Refuses the tables that the service names. If it names none, halves the new tables to find the refused one. */
function without(state: State, asked: Table[], status: number, body: Body): Result {
  const given = body?.errors;
  const errors = Array.isArray(given) ? given : [];
  const at = (error: { pointer?: string } | undefined) =>
    asked[Number(/^\/tables\/(\d+)(\/|$)/.exec(error?.pointer ?? "")?.[1] ?? -1)];
  const refused = { ...state.refused };
  const refuse = (table: Table, of: NonNullable<ProblemBody["errors"]>) => {
    const [first] = of;
    const { code = `http.${status}`, detail = "" } = body ?? {};
    const place = first ? { detail: first.detail, pointer: first.pointer } : { detail };
    refused[table.id] = { table, problem: { status, code, ...place } as Problem };
  };
  for (const table of asked) {
    const own = errors.filter((error) => at(error) === table);
    if (own.length > 0) refuse(table, own);
  }
  if (Object.keys(refused).length > Object.keys(state.refused).length) return put({ ...state, refused });
  // The service no longer knows the event, so the changes since are not sent.
  if (state.since && errors.some(({ pointer }) => pointer === "/lastEventId")) return put({ ...state, since: null });
  const fresh = asked.filter((table) => !isTaken(state, table));
  const isKnown = fresh.length === 0;
  const unknown = isKnown ? asked : fresh;
  if (unknown.length > 1) {
    return put({ ...state, taken: isKnown ? [] : state.taken, limit: Math.floor(unknown.length / 2) });
  }
  // The total is too large: if one table does not fit, the tables behind it do not fit either.
  const isFull = errors.some(({ pointer }) => pointer === "/tables");
  const from = left(state).indexOf(unknown[0]);
  const without = isFull ? left(state).slice(from).filter((table) => !isTaken(state, table)) : unknown;
  for (const table of without) refuse(table, errors);
  return without.length > 0 ? put({ ...state, refused }) : finish(state, status, body);
}

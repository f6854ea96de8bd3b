// Rows that are on the screen, kept up to date by filters on the service. Rows that the user scrolls past are not
// subscribed to, invisible rows cost nothing, and nothing is subscribed to in the background.
import { answered as settled, change, connect, leave, note, place, updated } from "./filters.js";
import { isFinal, isTaken } from "./loading.js";
import { same } from "./same.js";
import type { Outcome, StoreAction } from "../actions.js";
import type { ClientEvents } from "../contract.js";
import type { Row } from "../types.js";
import type { FilterState } from "./filters.js";
import type { InputOf, MachineEvent, StoreInputOf } from "./inputs.js";

interface Limits {
  valuesMax: number;
  perStreamMax: number;
  valuesPerStreamMax: number;
  filterBytesMax: number;
}

interface What {
  schema: string;
  table: string;
  column: string;
  event: string;
  select: string[] | null;
  name: string;
}

/** `restored`: the ids of rows of the last start that nothing has changed since. */
export interface State extends FilterState {
  table: What;
  limits: Limits;
  ids: string[];
  isPaused: boolean;
  isStopped: boolean;
  placed: string;
  changedAt: number | null;
  warned: number;
  restored: string[];
}

type Result = Outcome<State>;

/** While the user scrolls, the visible rows change with every frame. They are put once stable for this long… */
const restMs = 250;
/** … or once they have been changing for this long, because a user who scrolls continuously wants to see counts too. */
const restMsMax = 1000;
/** Above these numbers of ids on one screen, the app should page the list or subscribe to a topic for it
 * (R-ENG-E-4). */
const levels = [
  {
    above: 1000, code: "visible-rows.batch",
    text: "So many rows need a topic of their own: subscribe to it instead.",
  },
  { above: 300, code: "visible-rows.many", text: "More rows than fit on one screen: name only the visible ones." },
];
/** The defaults of `/v1/config`, until it has answered. */
const defaults = { valuesMax: 1000, perStreamMax: 100, valuesPerStreamMax: 10_000, filterBytesMax: 65_536 };

export function initial(options: Partial<What> & { table: string; limits?: Partial<Limits> }): State {
  const { schema = "public", table, column = "id", event = "UPDATE", select = null, name = table, limits } = options;
  return {
    table: { schema, table, column, event, select, name }, limits: { ...defaults, ...limits }, ids: [], rows: {},
    isPaused: false, isStopped: false, isForeground: true, isPut: false, problem: null, placed: "[]", changedAt: null,
    warned: Infinity, lastEventId: null, since: null, restored: [], failures: 0,
  };
}

export const snapshot = ({ ids, rows, isPut, problem }: State) => ({ ids, rows, isLive: isPut, problem });

export function receive(state: State, input: InputOf<"visible-rows">): Result {
  const made = own(state, input);
  return { state: same(state, made.state), actions: made.actions };
}

function own(given: State, input: InputOf<"visible-rows">): Result {
  const state = changing(given, input);
  switch (input.type) {
    case "start": return { state, actions: [{ do: "fetch", path: "/v1/config", as: "config" }] };
    case "restore": return { state: restore(state, input.kept as Pick<State, "ids" | "rows" | "since">), actions: [] };
    case "show": return show(state, input);
    case "apply": {
      const { row } = input;
      return { state: { ...state, rows: update(state, { [row[state.table.column]]: row }) }, actions: [] };
    }
    case "pause": return put(leave({ ...state, isPaused: true }));
    case "resume": return put({ ...state, isPaused: false });
    case "stop": return put({ ...state, isStopped: true, ids: [], rows: {}, since: null });
    case "lifecycle":
      return put(input.foreground ? { ...state, isForeground: true } : leave({ ...state, isForeground: false }));
    case "connection": return { state: connect(state, input), actions: [] };
    case "user": return put({ ...initial({ ...state.table, limits: state.limits }), placed: state.placed });
    case "timer": return put({ ...state, changedAt: null }, input.name === "retry");
    case "event": return handle(state, input.event);
    case "answer": return answered(state, input);
  }
  return { state, actions: [] };
}

/** Returns what the device keeps for the next start; null for nothing. */
export const kept = ({ ids, rows, since, lastEventId }: State) =>
  ids.length ? { ids, rows, since: since ?? lastEventId } : null;

/** Shows the rows of the last start until the service accepts those of the screen, with the changes since then. */
function restore(state: State, { ids, rows, since }: Pick<State, "ids" | "rows" | "since">): State {
  return state.ids.length || state.placed !== "[]" ? state : { ...state, ids, rows, since, restored: Object.keys(rows) };
}

/** Drops the rows of the last start that nothing has changed: they would cover what the app has fetched since. */
function fresh(state: State): State {
  if (state.restored.length === 0) return state;
  const rows = Object.fromEntries(Object.entries(state.rows).filter(([id]) => !state.restored.includes(id)));
  return { ...state, rows, restored: [] };
}

/** Notes which rows are no longer those of the last start. */
function changing(state: State, { type, event, row }: InputOf<"visible-rows">): State {
  if (state.restored.length === 0 || (type !== "event" && type !== "apply")) return state;
  const { column } = state.table;
  const { record, oldRecord, updates = {} } = event?.data ?? {};
  const ids = [row, record, oldRecord].map((one) => String(one?.[column])).concat(Object.keys(updates));
  return { ...state, restored: state.restored.filter((id) => !ids.includes(id)) };
}

function show(state: State, { ids, now }: Extract<InputOf<"visible-rows">, { type: "show" }>): Result {
  const unique = [...new Set(ids.map(String))];
  const rows = Object.fromEntries(unique.filter((id) => id in state.rows).map((id) => [id, state.rows[id]]));
  const level = levels.find(({ above }) => unique.length > above);
  // Reported when the level is crossed, not at every step of a scroll.
  const isNew = level && level.above !== state.warned;
  const data = { ...level, count: unique.length } as ClientEvents["visible-rows:warning"];
  const warnings: StoreAction[] = isNew ? [{ do: "publish", name: "visible-rows:warning", data }] : [];
  const next = { ...state, ids: unique, rows, isStopped: false, warned: level?.above ?? Infinity };
  // The first rows of a screen are put without delay.
  if (state.placed === "[]" && state.changedAt === null) {
    const made = put(next);
    return { state: made.state, actions: [...warnings, ...made.actions] };
  }
  const changedAt = state.changedAt ?? now;
  const at = Math.min(now + restMs, changedAt + restMsMax);
  return { state: { ...next, changedAt }, actions: [...warnings, { do: "timer", name: "rest", at }] };
}

function put(state: State, isForced = false): Result {
  const isOff = state.isPaused || state.isStopped || !state.isForeground;
  const tables = isOff ? [] : subscriptions(state);
  const placed = JSON.stringify(tables);
  if (placed === state.placed && !isForced) return { state, actions: [] };
  return { state: { ...state, placed, isPut: false }, actions: [place(state, tables)] };
}

function handle(state: State, event: MachineEvent): Result {
  const { name, data } = event;
  const isPlaced = state.placed !== "[]";
  const next = note(state, event, isPlaced);
  switch (name) {
    case "stream:ready": return isPlaced ? put(next, true) : { state: next, actions: [] };
    // Of the service, or of the user's own likes.
    case "post:engaged": case "engagement_update":
      return { state: { ...next, rows: update(next, data.updates) }, actions: [] };
    case "table:change": {
      const { column, name: own } = state.table;
      const key = String((data.record ?? data.oldRecord)?.[column]);
      if (!data.subscriptionIds.some((one: string) => one.startsWith(`${own}:`))) break;
      if (state.ids.includes(key)) return { state: { ...next, rows: change(next.rows, key, data) }, actions: [] };
    }
  }
  return { state: next, actions: [] };
}

const update = ({ ids, rows }: State, updates: Record<string, Row>) => updated(rows, updates, (id) => ids.includes(id));

function answered(state: State, input: StoreInputOf<"answer">): Result {
  const { as, status, body } = input;
  if (as === "config" && isTaken(status)) return put({ ...state, limits: { ...state.limits, ...body.subscriptions } });
  if (as !== "tables") return { state, actions: [] };
  const made = settled(state, input, state.placed !== "[]");
  if (isTaken(status) && made.state.isPut) return { state: fresh(made.state), actions: [] };
  const { problem } = made.state;
  if (status === 404 || !isFinal(status) || !problem) return made;
  return { state: made.state, actions: [{ do: "publish", name: "visible-rows:refused", data: { problem } }] };
}

/** Filters, each within the service's limits for the number of values and of bytes. */
function subscriptions({ ids, table: of, limits }: State) {
  const { schema, table, column, event, select, name } = of;
  const head = `${column}=in.()`.length;
  const chunks: string[][] = [];
  let bytes = Infinity;
  for (const id of ids.slice(0, limits.valuesPerStreamMax)) {
    const value = quoted(id);
    const more = bytesOf(value) + 1;
    if (bytes + more > limits.filterBytesMax || chunks[chunks.length - 1].length >= limits.valuesMax) {
      if (chunks.length >= limits.perStreamMax) break;
      chunks.push([]);
      bytes = head;
    }
    chunks[chunks.length - 1].push(value);
    bytes += more;
  }
  return chunks.map((values, index) => {
    const filter = `${column}=in.(${values.join(",")})`;
    return { id: `${name}:${index}`, schema, table, event, filter, ...(select ? { select } : {}) };
  });
}

/** Returns a value in the filter grammar: plain, or quoted if one of its characters would end it. */
function quoted(value: string) {
  const isPlain = value !== "" && !/[,()"\\]|^\s|\s$/.test(value);
  return isPlain ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
}

/** The size in UTF-8. */
function bytesOf(text: string) {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}

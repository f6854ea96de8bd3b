// The row subscriptions of a stream. They are put again on each new stream and when they change. Refused tables are
// left out, so that one wrong table does not block the others. Each owner learns the result for its own tables.

/**
 * @typedef {import("./inputs").Table} Table
 * @typedef {import("./inputs").ProblemBody | null | undefined} ProblemBody
 * @typedef {{streamId: string | null, tables: Table[], since: string | null, taken: Table[],
 *   refused: Record<string, {table: Table, problem: any}>, asked: Table[] | null, count: number, limit: number | null,
 *   answer: {status: number, body: any} | null}} State `taken`: those that the present stream has
 * @typedef {{state: State, actions: any[]}} Result
 */

/** Delay between two tries, if the service could not answer. */
const againMs = 5000;

/** @returns {State} */
export const initial = () => ({
  streamId: null, tables: [], since: null, taken: [], refused: {}, asked: null, count: 0, limit: null, answer: null,
});

/** @param {State} state @param {import("./inputs").TablesInput} input @returns {Result} */
export function receive(state, input) {
  switch (input.type) {
    case "want": return want(state, input);
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

/** Returns an event with the ids that the owner of these prefixes chose; null if it concerns other tables.
 * @template {{name: string, data: any}} One @param {string[]} prefixes @param {One} event @returns {One | null} */
export function seen(prefixes, event) {
  const ids = event.data?.subscriptionIds;
  if (event.name !== "table:change" || !Array.isArray(ids)) return event;
  const own = ids.flatMap((id) => {
    const prefix = prefixes.find((known) => id.startsWith(known));
    return prefix === undefined ? [] : [id.slice(prefix.length)];
  });
  return own.length === 0 ? null : { ...event, data: { ...event.data, subscriptionIds: own } };
}

/** @param {number | null} at */
const timer = (at) => ({ do: "timer", name: "tables", at });

/** @param {unknown} one @param {unknown} other */
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** @param {State} state @param {import("./inputs").TablesInputOf<"want">} input @returns {Result} */
function want(state, { tables, lastEventId = null }) {
  // If the stream already has these tables, the stored answer is returned.
  if (isSame(tables, state.tables)) return { state, actions: state.answer ? [told(state, state.answer)] : [] };
  const refused = Object.fromEntries(Object.entries(state.refused).filter(([id, { table }]) =>
    tables.some((/** @type {Table} */ one) => one.id === id && isSame(one, table))));
  // Changes that an unanswered earlier put asked for are still missed.
  const since = state.answer ? lastEventId : state.since ?? lastEventId;
  const next = { ...state, tables, refused, since, limit: null, answer: null };
  return state.streamId === null ? { state: { ...next, since: null }, actions: [] } : put(next);
}

/** @param {State} state @returns {Table[]} those that are not refused */
const left = ({ tables, refused }) => tables.filter(({ id }) => !refused[id]);

/** @param {State} state @param {Table} table */
const isTaken = ({ taken }, table) => taken.some((one) => isSame(one, table));

/** @param {State} state @returns {Result} */
function put(state) {
  if (state.streamId === null) return { state, actions: [] };
  let room = state.limit ?? Infinity;
  const asked = left(state).filter((table) => isTaken(state, table) || room-- > 0);
  if (isSame(asked, state.taken) && (asked.length === 0 || state.since === null)) return finish(state, 200, null);
  const next = { ...state, asked, count: state.count + 1 };
  const missed = state.since && asked.length > 0 ? { lastEventId: state.since } : {};
  const action = { do: "put", streamId: state.streamId, count: next.count, tables: asked, ...missed };
  return { state: next, actions: [timer(null), action] };
}

/** @param {State} state @param {number} status @param {ProblemBody} body @returns {Result} */
function finish(state, status, body) {
  const answer = { status, body };
  const next = { ...state, asked: null, limit: null, answer, since: status === 200 ? null : state.since };
  return { state: next, actions: [told(next, answer)] };
}

/** @param {State} state @param {{status: number, body: any}} answer */
function told(state, { status, body }) {
  const refused = Object.fromEntries(Object.entries(state.refused).map(([id, { problem }]) => [id, problem]));
  return { do: "answered", status, body, refused };
}

/** @param {State} state @param {import("./inputs").TablesInputOf<"answer">} input @returns {Result} */
function answered(state, { now, status, body, retryAfterMs = 0 }) {
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

/** Refuses the tables that the service names. If it names none, halves the new tables to find the refused one.
 * @param {State} state @param {Table[]} asked @param {number} status @param {ProblemBody} body @returns {Result} */
function without(state, asked, status, body) {
  const given = body?.errors;
  const errors = Array.isArray(given) ? given : [];
  const at = (/** @type {{pointer?: string} | undefined} */ error) =>
    asked[Number(/^\/tables\/(\d+)(\/|$)/.exec(error?.pointer ?? "")?.[1] ?? -1)];
  const refused = { ...state.refused };
  const refuse = (/** @type {Table} */ table, /** @type {any[]} */ of) => {
    const [first] = of;
    const { code = `http.${status}`, detail = "" } = body ?? {};
    const place = first ? { detail: first.detail, pointer: first.pointer } : { detail };
    refused[table.id] = { table, problem: { status, code, ...place } };
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

// Decides which stores' states the device keeps, and when they are written: behind, once changes calm down, and within a
// bound. The latest changes stay longest.
import type { OfflineAction, Outcome, TimerAction } from "../actions.js";
import type { OfflineInput } from "./inputs.js";

/** By the place of their store. */
export type Entries = Record<string, { bytes: number; at: number }>;

export interface State {
  entries: Entries;
  changed: Record<string, true>;
  firstAt: number | null;
  limits: typeof defaults;
}

type Result = Outcome<State, OfflineAction>;

export const defaults = {
  /** Bytes of one user: without a bound, a phone would fill with what nobody looks at. */
  bytesMax: 1_000_000,
  /** A larger state would displace those of all other stores. */
  entryBytesMax: 262_144,
  /** Each entry is read at the start, before the first request. */
  entriesMax: 100,
  // Writes wait until changes rest for this long …
  restMs: 500,
  // … or have continued for this long.
  restMsMax: 5000,
};

export const initial = (limits?: Partial<typeof defaults>): State =>
  ({ entries: {}, changed: {}, firstAt: null, limits: { ...defaults, ...limits } });

export function receive(state: State, input: OfflineInput): Result {
  const { now } = input;
  switch (input.type) {
    case "loaded": return { state: { ...state, entries: input.entries }, actions: [] };
    case "changed": return changed(state, input.place, now);
    case "timer": case "flush": return flush(state);
    case "sized": return sized(state, input.sizes, now);
    case "forget": return { state: initial(state.limits), actions: [timer(null)] };
    default: return { state, actions: [] };
  }
}

const timer = (at: number | null): TimerAction => ({ do: "timer", name: "keep", at });

function changed(state: State, place: string, now: number): Result {
  const { restMs, restMsMax } = state.limits;
  const firstAt = state.firstAt ?? now;
  const next = { ...state, changed: { ...state.changed, [place]: true as true }, firstAt };
  return { state: next, actions: [timer(Math.min(now + restMs, firstAt + restMsMax))] };
}

function flush(state: State): Result {
  const places = Object.keys(state.changed).sort();
  if (places.length === 0) return { state, actions: [] };
  return { state: { ...state, changed: {}, firstAt: null }, actions: [timer(null), { do: "measure", places }] };
}

/** Writes the states that fit, and removes the oldest ones beyond the bound; 0 bytes: there is nothing to keep. */
function sized(state: State, sizes: Record<string, number>, now: number): Result {
  const { bytesMax, entryBytesMax, entriesMax } = state.limits;
  const places = Object.keys(sizes).sort();
  const write = places.filter((place) => sizes[place] > 0 && sizes[place] <= entryBytesMax);
  const all = { ...state.entries, ...Object.fromEntries(places.map((place) =>
    [place, { bytes: sizes[place], at: now }])) };
  const fitting = Object.keys(all).filter((place) => !(place in sizes) || write.includes(place));
  fitting.sort((one, other) => all[other].at - all[one].at || (one < other ? -1 : 1));
  const entries: Entries = {};
  let bytes = 0;
  for (const place of fitting.slice(0, entriesMax)) {
    bytes += all[place].bytes;
    if (bytes <= bytesMax) entries[place] = all[place];
  }
  const remove = Object.keys(state.entries).filter((place) => !(place in entries)).sort();
  const action: OfflineAction = { do: "write", write: write.filter((place) => place in entries), remove, entries };
  return { state: { ...state, entries }, actions: [action] };
}

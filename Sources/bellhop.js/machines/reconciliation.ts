// Decides when to fetch the counts beside the stream (R-CNT-RECON-1 to R-CNT-RECON-5, R-CNT-G4, R-15). Connected
// clients poll faster than disconnected ones, as the requirement demands. An unchanged count is a cheap 304.
import type { Outcome, ReconciliationAction, TimerAction } from "../actions.js";
import type { ReconciliationInput, ReconciliationInputOf } from "./inputs.js";

export interface State {
  isConnected: boolean;
  isForeground: boolean;
  etag: string | null;
  askedAt: number;
  /** Time of the last successful answer. */
  syncedAt: number;
  isAsking: boolean;
  /** Requested while another fetch was running. */
  isDue: boolean;
  /** Earliest time of the next fetch, set by the service. */
  notBefore: number;
  limits: typeof defaults;
}

type Result = Outcome<State, ReconciliationAction>;

export const defaults = {
  connectedMs: 10_000,
  disconnectedMs: 90_000,
  tabSwitchMs: 15_000,
  // Minimum time between two fetches: a flapping connection would otherwise poll at each return.
  leastMs: 3_000,
};

export function initial(options: Partial<typeof defaults> & { isForeground?: boolean } = {}): State {
  const { isForeground = true, ...limits } = options;
  return {
    isConnected: false, isForeground, etag: null, askedAt: -Infinity, syncedAt: -Infinity, isAsking: false,
    isDue: false, notBefore: 0, limits: { ...defaults, ...limits },
  };
}

export function receive(state: State, input: ReconciliationInput): Result {
  const { now } = input;
  switch (input.type) {
    case "start": return soon(state, now);
    case "connection": {
      const isConnected = input.status === "live";
      if (isConnected === state.isConnected && !input.reconnected) return { state, actions: [] };
      const next = { ...state, isConnected };
      return isConnected ? soon(next, now) : later(next, now);
    }
    case "lifecycle": {
      const next = { ...state, isForeground: input.foreground };
      if (input.foreground === state.isForeground) return { state, actions: [] };
      return input.foreground ? soon(next, now) : { state: next, actions: [timer(null)] };
    }
    // A switch to another screen or tab within the app.
    case "tabSwitch":
      return now - state.syncedAt >= state.limits.tabSwitchMs ? soon(state, now) : { state, actions: [] };
    // A write whose answer carried no counts (R-CNT-RECON-3).
    case "force": return soon(state, now);
    case "timer": return ask(state, now);
    case "answer": return answered(state, input);
    case "user": return soon(initial({ isForeground: state.isForeground, ...state.limits }), now);
    default: return { state, actions: [] };
  }
}

const timer = (at: number | null): TimerAction => ({ do: "timer", name: "poll", at });

function soon(state: State, now: number): Result {
  if (!state.isForeground) return { state, actions: [] };
  if (state.isAsking) return { state: { ...state, isDue: true }, actions: [] };
  const at = Math.max(state.askedAt + state.limits.leastMs, state.notBefore);
  return at <= now ? ask(state, now) : { state, actions: [timer(at)] };
}

function later(state: State, now: number): Result {
  if (!state.isForeground || state.isAsking) return { state, actions: [] };
  const { connectedMs, disconnectedMs } = state.limits;
  const at = state.askedAt + (state.isConnected ? connectedMs : disconnectedMs);
  return { state, actions: [timer(Math.max(at, now, state.notBefore))] };
}

function ask(state: State, now: number): Result {
  if (!state.isForeground || state.isAsking) return { state, actions: [] };
  const headers: Record<string, string> = state.etag === null ? {} : { "If-None-Match": state.etag };
  return {
    state: { ...state, isAsking: true, isDue: false, askedAt: now },
    actions: [timer(null), { do: "fetch", path: "/v1/badges", headers, asked: now }],
  };
}

function answered(state: State, input: ReconciliationInputOf<"answer">): Result {
  const { now, status, etag = null, retryAfterMs = 0, body, asked } = input;
  // The user of this answer has signed out.
  if (asked !== undefined && asked !== state.askedAt) return { state, actions: [] };
  const isGood = status === 200 || status === 304;
  const next = {
    ...state, isAsking: false, isDue: false, syncedAt: isGood ? now : state.syncedAt, notBefore: now + retryAfterMs,
    etag: status === 200 ? etag : state.etag,
  };
  const actions: ReconciliationAction[] = status === 200 ? [{ do: "reconciled", status, body }] : [];
  const then = state.isDue ? soon(next, now) : later(next, now);
  return { state: then.state, actions: [...actions, ...then.actions] };
}

// Decides when to fetch the counts beside the stream (R-CNT-RECON-1 to R-CNT-RECON-5, R-CNT-G4, R-15). Connected
// clients poll faster than disconnected ones, as the requirement demands. An unchanged count is a cheap 304.
import type { Outcome, PollingAction, TimerAction } from "../actions.js";
import type { PollingInput, PollingInputOf } from "./inputs.js";

export interface State {
  connected: boolean;
  foreground: boolean;
  etag: string | null;
  askedAt: number;
  /** Time of the last successful answer. */
  syncedAt: number;
  asking: boolean;
  /** Requested while another fetch was running. */
  due: boolean;
  /** Earliest time of the next fetch, set by the service. */
  notBefore: number;
  limits: typeof defaults;
}

type Result = Outcome<State, PollingAction>;

export const defaults = {
  connectedMs: 10_000,
  disconnectedMs: 90_000,
  tabSwitchMs: 15_000,
  // Minimum time between two fetches: a flapping connection would otherwise poll at each return.
  leastMs: 3_000,
};

export function initial(options: Partial<typeof defaults> & { foreground?: boolean } = {}): State {
  const { foreground = true, ...limits } = options;
  return {
    connected: false, foreground, etag: null, askedAt: -Infinity, syncedAt: -Infinity, asking: false, due: false,
    notBefore: 0, limits: { ...defaults, ...limits },
  };
}

export function receive(state: State, input: PollingInput): Result {
  const { now } = input;
  switch (input.type) {
    case "start": return soon(state, now);
    case "connection": {
      const connected = input.status === "live";
      if (connected === state.connected && !input.reconnected) return { state, actions: [] };
      const next = { ...state, connected };
      return connected ? soon(next, now) : later(next, now);
    }
    case "lifecycle": {
      const next = { ...state, foreground: input.foreground };
      if (input.foreground === state.foreground) return { state, actions: [] };
      return input.foreground ? soon(next, now) : { state: next, actions: [timer(null)] };
    }
    // A switch to another screen or tab within the app.
    case "tabSwitch":
      return now - state.syncedAt >= state.limits.tabSwitchMs ? soon(state, now) : { state, actions: [] };
    // A write whose answer carried no counts (R-CNT-RECON-3).
    case "force": return soon(state, now);
    case "timer": return ask(state, now);
    case "answer": return answer(state, input);
    case "user": return soon(initial({ foreground: state.foreground, ...state.limits }), now);
    default: return { state, actions: [] };
  }
}

const timer = (at: number | null): TimerAction => ({ do: "timer", name: "poll", at });

function soon(state: State, now: number): Result {
  if (!state.foreground) return { state, actions: [] };
  if (state.asking) return { state: { ...state, due: true }, actions: [] };
  const at = Math.max(state.askedAt + state.limits.leastMs, state.notBefore);
  return at <= now ? ask(state, now) : { state, actions: [timer(at)] };
}

function later(state: State, now: number): Result {
  if (!state.foreground || state.asking) return { state, actions: [] };
  const { connectedMs, disconnectedMs } = state.limits;
  const at = state.askedAt + (state.connected ? connectedMs : disconnectedMs);
  return { state, actions: [timer(Math.max(at, now, state.notBefore))] };
}

function ask(state: State, now: number): Result {
  if (!state.foreground || state.asking) return { state, actions: [] };
  const headers: Record<string, string> = state.etag === null ? {} : { "If-None-Match": state.etag };
  return {
    state: { ...state, asking: true, due: false, askedAt: now },
    actions: [timer(null), { do: "fetch", path: "/v1/badges", headers, asked: now }],
  };
}

function answer(state: State, input: PollingInputOf<"answer">): Result {
  const { now, status, etag = null, retryAfterMs = 0, body, asked } = input;
  // The user of this answer has signed out.
  if (asked !== undefined && asked !== state.askedAt) return { state, actions: [] };
  const isGood = status === 200 || status === 304;
  const next = {
    ...state, asking: false, due: false, syncedAt: isGood ? now : state.syncedAt, notBefore: now + retryAfterMs,
    etag: status === 200 ? etag : state.etag,
  };
  const actions: PollingAction[] = status === 200 ? [{ do: "reconciled", status, body }] : [];
  const then = state.due ? soon(next, now) : later(next, now);
  return { state: then.state, actions: [...actions, ...then.actions] };
}

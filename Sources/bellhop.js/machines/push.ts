// The registration of a device for push messages, and what a device does with a message. A token or a subscription is
// registered at each start, because the platform may have changed it.
import { isFinal, isTaken, problemOf, waitMs } from "./loading.js";
import type { MessageAction, Outcome, PushAction, TimerAction } from "../actions.js";
import type { Problem } from "../features.js";
import type { PushStatus as Status } from "../push.js";
import type { JSONValue } from "../types.js";
import type { AnswerInput, PushInput } from "./inputs.js";

/** `request`: the request without an answer. */
export interface State {
  deviceId: string;
  status: Status;
  problem: Problem | null;
  draft: object | null;
  request: string | null;
  count: number;
  failures: number;
}

type Result = Outcome<State, PushAction>;

/** What holds for every user of this device. */
const lasting: Status[] = ["unsupported", "denied", "unavailable"];

export const initial = (options?: { deviceId?: string }): State => ({
  deviceId: options?.deviceId ?? "", status: "off", problem: null, draft: null, request: null, count: 0, failures: 0,
});

export const snapshot = ({ deviceId, status, problem }: State) => ({ deviceId, status, problem });

export function receive(state: State, input: PushInput): Result {
  switch (input.type) {
    case "device": return { state: { ...state, deviceId: input.id }, actions: [] };
    // What the platform says before there is a token.
    case "status": return { state: { ...state, status: input.status, problem: input.problem ?? null }, actions: [] };
    case "register": return put({ ...state, draft: input.draft, problem: null, failures: 0 });
    case "unregister": return remove(state);
    case "timer": return state.draft && !state.request ? put(state) : { state, actions: [] };
    case "connection": {
      const isDue = state.status === "registering" && !state.request && input.status === "live";
      return isDue ? put(state) : { state, actions: [] };
    }
    // The registration of the former user ended with the sign-out, or ends when another user registers the token.
    case "user": {
      const status = lasting.includes(state.status) ? state.status : "off";
      return { state: { ...initial(state), status, count: state.count }, actions: [timer(null)] };
    }
    case "answer": return answered(state, input);
    case "event": return { state, actions: state.status === "on" ? settled(input.event) : [] };
    case "message": return { state, actions: message(input.payload) };
    default: return { state, actions: [] };
  }
}

const timer = (at: number | null): TimerAction => ({ do: "timer", name: "push", at });

const path = ({ deviceId }: State) => `/v1/devices/${encodeURIComponent(deviceId)}`;

function put(state: State): Result {
  const as = `register-${state.count + 1}`;
  return {
    state: { ...state, count: state.count + 1, request: as, status: "registering" },
    actions: [timer(null), { do: "call", method: "PUT", path: path(state), body: state.draft, as }],
  };
}

function remove(state: State): Result {
  const isKnown = state.draft !== null;
  return {
    state: { ...initial(state), count: state.count },
    actions: isKnown ? [timer(null), { do: "call", method: "DELETE", path: path(state), as: "unregister" }] : [timer(null)],
  };
}

function answered(state: State, input: AnswerInput & { now: number }): Result {
  const { as, status, headers, now } = input;
  if (as !== state.request) return { state, actions: [] };
  const next = { ...state, request: null };
  if (isTaken(status)) return { state: { ...next, status: "on", problem: null, failures: 0 }, actions: [] };
  const problem = problemOf(input);
  if (isFinal(status)) {
    const refused = problem.code === "push.off" ? "unavailable" : "refused";
    return { state: { ...next, status: refused, draft: null, problem }, actions: [] };
  }
  const failures = state.failures + 1;
  return { state: { ...next, problem, failures }, actions: [timer(now + waitMs(failures, headers))] };
}

/** What was seen elsewhere leaves the screen of this device, and the icon shows the new number. */
function settled({ name, data }: { name: string; data: JSONValue }): PushAction[] {
  switch (name) {
    case "badges:update": return [{ do: "badge", count: data.total }];
    case "notification:updated": return data.state.seen || data.state.read || data.state.archived ? closed(data.ids) : [];
    case "notification:removed": return closed(data.ids);
    case "conversation:read": return data.unread === 0 ? closed([`conversation:${data.conversationId}`]) : [];
    default: return [];
  }
}

const closed = (tags: string[]): MessageAction[] => tags.length ? [{ do: "close", tags }] : [];

/** Returns what a device does with a message of the service. */
export function message(payload: JSONValue): MessageAction[] {
  const { title, body = "", silent = false, withdrawn, badge, tag = "", data = {} } = payload ?? {};
  return [
    ...closed(withdrawn ?? []),
    ...(typeof title === "string" ? [{ do: "show", title, body, tag, silent, data } as const] : []),
    ...(Number.isSafeInteger(badge) ? [{ do: "badge", count: badge } as const] : []),
  ];
}

// Loads a feature's state: at the start, again when the stream opens (changes between the two were not delivered), and
// after a gap in the stream. Events that arrive during the fetch are kept and applied to the answer, because the answer
// may be older than they are.
import type { FetchAction, Outcome, PublishAction, TimerAction } from "../actions.js";
import type { Problem } from "../features.js";
import type { Badges } from "../models.js";
import type { JSONValue } from "../types.js";
import type { InputOf, Refresh, StoreInput, StoreInputOf } from "./inputs.js";

/** `isKept`: the device has kept the state since its last start. */
export interface Loading {
  isLoaded: boolean;
  isLoading: boolean;
  isAgain: boolean;
  isCovered: boolean;
  isKept: boolean;
  failures: number;
  problem: Problem | null;
  since: StoreInputOf<"event">[];
}

/** `body`: of an answer that has come; `isGone`: the service refuses the state that the device has kept. */
interface Step {
  loading: Loading;
  actions: (FetchAction | TimerAction)[];
  body?: JSONValue;
  since: StoreInputOf<"event">[];
  isGone?: boolean;
}

/** If more events than this arrive during one fetch, the answer is useless, and the state is fetched again. */
const sinceMax = 500;

export const unloaded: Loading = {
  isLoaded: false, isLoading: false, isAgain: false, isCovered: false, isKept: false, failures: 0, problem: null, since: [],
};

/** Whether the service does not have the feature. It may have it when a stream opens again. */
const isOff = ({ problem }: Loading) => problem?.code === "feature.off";

/** @param what `events`: those to apply to the answer again */
export function advance(
  loading: Loading, input: StoreInput | Refresh,
  { as, path, events = [] }: { as: string; path: string; events?: string[] },
): Step {
  const fetch: FetchAction = { do: "fetch", path, as };
  const begin = (changes: Partial<Loading>) => loading.isLoading
    ? { loading: { ...loading, ...changes, isAgain: true }, actions: [], since: [] }
    : { loading: { ...loading, ...changes, isLoading: true, isAgain: false, since: [] }, actions: [fetch], since: [] };
  switch (input.type) {
    case "start": return begin({ isCovered: input.connection === "live" });
    case "refresh": if (!isOff(loading)) return begin({}); break;
    case "timer": if (input.name === as) return begin({}); break;
    case "answer": if (input.as === as && loading.isLoading) return answered(loading, input, fetch); break;
    case "event": {
      const { name } = input.event;
      const isGap = isOff(loading) ? name === "stream:ready"
        : name === "stream:resync" || (name === "stream:ready" && !loading.isCovered);
      if (isGap) return begin({ isCovered: true });
      if (loading.isLoading && events.includes(name)) return { loading: keep(loading, input), actions: [], since: [] };
    }
  }
  return { loading, actions: [], since: [] };
}

/** Restarts from the empty state after another user signed in, or after the user signed out. */
export function beginAnew<State>(
  receive: (state: State, input: InputOf<never>) => Outcome<State>, empty: State, input: StoreInput,
) {
  const { now, user, signedIn } = input;
  if (!signedIn) return { state: empty, actions: [] };
  return receive(empty, { type: "start", connection: "connecting", user, now });
}

/** Shows what the device has kept until the service answers. A state of the service stays.
 * @param withKept returns the state with these members */
export function restored<State extends { loading: Loading }, Kept>(
  state: State, input: StoreInput, withKept: (state: State, kept: Kept) => State,
): State {
  if (input.type !== "restore" || state.loading.isLoaded) return state;
  const next = withKept(state, input.kept as Kept);
  return { ...next, loading: { ...next.loading, isLoaded: true, isKept: true } };
}

function keep(loading: Loading, input: StoreInputOf<"event">): Loading {
  if (loading.since.length >= sinceMax) return { ...loading, isAgain: true, since: [] };
  return { ...loading, since: [...loading.since, input] };
}

function answered(
  { isAgain, since, ...loading }: Loading, input: StoreInputOf<"answer">,
  fetch: FetchAction,
): Step {
  const next = { ...loading, isLoading: isAgain, isAgain: false, since: [] };
  const actions: FetchAction[] = isAgain ? [fetch] : [];
  if (isTaken(input.status)) {
    const loaded = { ...next, isLoaded: true, isKept: false, failures: 0, problem: null };
    return { loading: loaded, actions, body: input.body, since };
  }
  if (isAgain) return { loading: next, actions, since: [] };
  const problem = problemOf(input);
  if (isFinal(input.status)) {
    // The user may no longer see it.
    const isGone = loading.isKept && [403, 404, 410].includes(input.status);
    const left = isGone ? { ...next, isLoaded: false, isKept: false } : next;
    return { loading: { ...left, failures: 0, problem }, actions, since: [], isGone };
  }
  const failures = loading.failures + 1;
  const at = input.now + waitMs(failures, input.headers);
  // While the device is offline, no events are delivered until the stream opens.
  const isCovered = loading.isCovered && input.status !== 0;
  const timer: TimerAction = { do: "timer", name: fetch.as, at };
  return { loading: { ...next, failures, problem, isCovered }, actions: [timer], since: [] };
}

/** Returns 2, 4, 8 … 60 s, or the service's `Retry-After` if that is longer (an hour at most). */
export function waitMs(failures: number, headers?: Record<string, string>) {
  const asked = Number(headers?.["retry-after"]) || 0;
  return Math.max(Math.min(2 ** failures, 60), Math.min(asked, 3600)) * 1000;
}

export const isTaken = (status: number) => status >= 200 && status < 300;

/** Returns whether a retry would get the same refusal. */
export const isFinal = (status: number) => status >= 400 && status < 500 && ![401, 408, 425, 429].includes(status);

/** Returns a refusal as an app may report it: the service's stable code and its sentence. */
export function problemOf({ status, body }: { status: number; body: JSONValue }): Problem {
  return { status, code: body?.code ?? (status === 0 ? "unreachable" : "unknown"), detail: body?.detail ?? "" };
}

/** Forwards the answer's counts to the counts machine, the only place that shows them (R-CNT-RECON-3). */
export function badgesEvent(body: { badges?: Badges } | null | undefined): PublishAction[] {
  return body?.badges ? [{ do: "publish", name: "badges:update", data: body.badges }] : [];
}

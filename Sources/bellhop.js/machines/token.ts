// Decides when to request a token from the app, and how to use it (R-SCH-FR-001, R-SCH-FR-002, R-SCH-NFR-004,
// R-SCH-EC4).
import type { Outcome, TimerAction, TokenAction } from "../actions.js";
import type { Refusal } from "../types.js";
import type { TokenInput, TokenInputOf } from "./inputs.js";

export interface State {
  token: string | null;
  /** The user of the token. */
  user: string | null;
  /** The service's digest of the token's rights; null if unknown. */
  identity: string | null;
  /** When the token's life ends, counted from its receipt; null if unknown. */
  expiresAt: number | null;
  receivedAt: number;
  /** When to request the next token, while a stream uses this one. */
  refreshAt: number | null;
  isAsking: boolean;
  /** A token that was refused or is about to expire: the app must return another. */
  spent: string | null;
  /** Why the present token was refused, so that it is not given out again. */
  refusal: Refusal | null;
  streamId: string | null;
  /** The token that the open stream uses. */
  streamToken: string | null;
  isRenewing: boolean;
  /** Why there is no token. */
  problem: Refusal | null;
}

type Result = Outcome<State, TokenAction>;

/** How long before its end a token is replaced; a quarter of its life if that is shorter. */
const leadMs = 60_000;
/** Delay before a stream asks again, if the app could not replace its token. */
const askMs = 10_000;

export function initial(options: { user?: string | null; identity?: string | null } = {}): State {
  const { user = null, identity = null } = options;
  return {
    token: null, user, identity, expiresAt: null, receivedAt: 0, refreshAt: null, isAsking: false, spent: null,
    refusal: null, streamId: null, streamToken: null, isRenewing: false, problem: null
  };
}

export function receive(state: State, input: TokenInput): Result {
  const { now } = input;
  switch (input.type) {
    // Gives the present token, unless any caller reported it as refused, or its life is over.
    case "need": {
      const isRefused = state.token !== null && input.spent === state.token;
      const refusal = isRefused ? input.problem ?? { code: "token.wrong" } : state.refusal;
      const isSpent = state.token === null || refusal || state.expiresAt !== null && now >= state.expiresAt;
      if (!isSpent) return { state, actions: [{ do: "give", token: state.token }] };
      return ask({ ...state, refusal }, state.token);
    }
    case "token": return take(state, input);
    // The service refused a token before a call had used it. The app is asked for another one, once.
    case "refused": {
      const { token, problem } = input;
      if (state.spent !== null) return fail(state, now, problem);
      return ask({ ...state, isAsking: false, refusal: problem }, token);
    }
    case "failed": return fail(state, now, input.problem ?? null);
    case "timer": return input.name === "token" ? ask(state, state.token) : { state, actions: [] };
    // What the device shows is this identity's: a token of another one is another user's.
    case "assume": return { state: { ...state, identity: input.identity }, actions: [] };
    case "ready": {
      const next = { ...state, streamId: input.streamId, streamToken: input.token, isRenewing: false };
      return renew(next, [timer(next)]);
    }
    case "lost": {
      const next = { ...state, streamId: null, streamToken: null, isRenewing: false };
      return { state: next, actions: state.streamId === null ? [] : [timer(next)] };
    }
    // The service announces the end 30 s ahead, and its clock is more reliable than the device's.
    case "expiring": {
      if (state.streamToken !== state.token) return renew(state);
      // For a token that lives shorter than that, the announcement repeats at once; then the timer decides.
      const isYoung = state.refreshAt !== null && now < Math.min(state.refreshAt, state.receivedAt + askMs);
      return isYoung ? { state, actions: [] } : ask(state, state.token);
    }
    case "renewed": return renewed(state, input);
    default: return { state, actions: [] };
  }
}

function ask(state: State, spent: string | null): Result {
  if (state.isAsking) return { state, actions: [] };
  return { state: { ...state, isAsking: true, spent }, actions: [{ do: "ask", spent }] };
}

/** Only an open stream needs the next token before a caller requests it. */
const timer = (state: State): TimerAction =>
  ({ do: "timer", name: "token", at: state.streamId === null ? null : state.refreshAt });

function fail(state: State, now: number, problem: State["problem"]): Result {
  const isExpired = problem?.code === "invalid_token.expired";
  const next = {
    ...state, isAsking: false, spent: null, refreshAt: now + askMs,
    problem: isExpired ? { ...problem, code: "token.expired" } : problem,
  };
  return { state: next, actions: [{ do: "give", token: null }, timer(next)] };
}

/** Handles the app's answer. The service decides whether the token is valid: the device's clock may be wrong by days, so a
 * token's life is counted from its receipt, and only says when to ask for the next one. */
function take(
  state: State, { now, token, subject = null, identity = null, lifeMs = null }: TokenInputOf<"token">,
): Result {
  const isOld = token === state.spent;
  if (isOld && state.refusal) return fail(state, now, state.refusal);
  // A token of another user, or of the same user with other rights, starts a new session. The previous state must be
  // removed before new state is shown, and earlier writes must not be sent under the new rights.
  const isOther = differs(state.user, subject) || differs(state.identity, identity);
  if (isOther) {
    const actions: TokenAction[] = [{ do: "user", user: subject }, { do: "give", token: null }];
    return { state: { ...state, isAsking: false, spent: null }, actions };
  }
  const expiresAt = token === state.token ? state.expiresAt : lifeMs === null ? null : now + lifeMs;
  const next = {
    ...state, token, expiresAt, receivedAt: now, isAsking: false, spent: null, refusal: null, problem: null,
    refreshAt: lifeMs === null || expiresAt === null ? null : isOld ? now + askMs : expiresAt - Math.min(leadMs, lifeMs / 4),
    user: state.user ?? subject, identity: state.identity ?? identity,
  };
  return renew(next, [{ do: "give", token }, timer(next)]);
}

export const differs = (known: string | null, given: string | null) =>
  known !== null && given !== null && known !== given;

/** Renews the token of the open stream without reconnecting. */
function renew(state: State, actions: TokenAction[] = []): Result {
  const isDue = state.streamId !== null && state.token !== null && state.streamToken !== state.token;
  if (!isDue || state.isRenewing) return { state, actions };
  const action: TokenAction = { do: "renew", streamId: state.streamId as string, token: state.token as string };
  return { state: { ...state, isRenewing: true }, actions: [...actions, action] };
}

function renewed(state: State, { streamId, token, status }: TokenInputOf<"renewed">): Result {
  if (streamId !== state.streamId) return { state, actions: [] };
  const next = { ...state, isRenewing: false };
  if (status === 200) return renew({ ...next, streamToken: token });
  // Refused for good: a new connection shows whether the token is accepted. Otherwise `stream:expiring` tries again.
  const isRefused = status >= 400 && status < 500 && ![408, 425, 429].includes(status);
  return { state: next, actions: isRefused ? [{ do: "reconnect" }] : [] };
}

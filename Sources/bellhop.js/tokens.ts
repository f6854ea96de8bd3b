// Runs the token machine. The app's provider is called once for all waiting callers.
import { claimed } from "./machines/identity.js";
import * as machine from "./machines/token.js";
import { run } from "./stores/store.js";
import type { TokenAction } from "./actions.js";
import type { Identify } from "./internal.js";
import type { State } from "./machines/identity.js";
import type { Answer, Clock, Provider, Refusal } from "./types.js";

/** What a call or a provider throws if there is no token. */
interface Failure {
  answer?: Answer;
  token?: string;
  problem?: Refusal;
}

/** Limit for a provider's answer, so that a provider that never answers does not block everything. */
const askMsMax = 30_000;

interface TokenParts {
  provider: Provider;
  clock: Clock;
  /** The user that the app has named. A stream names none: the bell compares the users of its tokens. */
  name?: string | null;
  /** The identity that every token must have. */
  identity?: string | null;
  /** Asks the service for the identity of a token. */
  identify?: Identify;
  /** The app gave a token of another identity. */
  onUser?: (user: string | null) => void;
  onRenew?: (streamId: string, token: string) => void;
  onReconnect?: () => void;
}

export function tokens(
  { provider, clock, name: user = null, identity = null, identify, onUser, onRenew, onReconnect }: TokenParts,
) {
  let waiting: ((token: string | null) => void)[] = [];
  /** The service's answer because of which there is no token. */
  let answer: Answer | undefined;
  const it = run({ initial: machine.initial, receive: machine.receive }, { user, identity }, clock, perform);

  function perform(action: TokenAction) {
    switch (action.do) {
      case "ask": return void ask(action.spent);
      case "give": return give(action.token);
      case "renew": return onRenew?.(action.streamId, action.token);
      case "reconnect": return onReconnect?.();
      case "user": return onUser?.(action.user);
    }
  }

  function give(token: string | null) {
    const those = waiting;
    waiting = [];
    for (const resolve of those) resolve(token);
  }

  async function ask(spent: string | null) {
    const stop = clock.after(askMsMax, () => it.receive({ type: "failed", problem: { code: "token.slow" } }));
    answer = undefined;
    try {
      const token = await provider({ fresh: spent !== null, spent, problem: it.get().refusal });
      checkToken(token);
      const read = claims(token);
      // The service's answer may name another user than the token's subject.
      const identity = await identify?.(token, read);
      it.receive({ type: "token", token, ...read, identity });
    } catch (error) {
      ({ answer } = (error ?? {}) as Failure);
      const { token, problem } = (error ?? {}) as Failure;
      if (token && answer?.status === 401) it.receive({ type: "refused", token, problem: problem as Refusal });
      else it.receive({ type: "failed", problem: problem ?? { code: "token.failed", detail: String(error) } });
    } finally {
      stop();
    }
  }

  /** Resolves with a valid token, other than the spent one if the app has another; null if there is none. */
  const get = (spent?: string | null, problem?: Refusal | null): Promise<string | null> => new Promise((resolve) => {
    waiting.push(resolve);
    it.receive({ type: "need", spent, problem });
  });

  return {
    get,
    /** Resolves like `get`, but rejects if there is none. */
    async need(spent?: string | null, problem?: Refusal | null) {
      const token = await get(spent, problem);
      if (token === null) throw noToken(it.get().problem ?? undefined, { answer });
      return token;
    },
    receive: it.receive,
    state: it.get,
    close() {
      it.close();
      give(null);
    },
  };
}

/** Makes the error of a call without a token. */
export const noToken = (problem: Refusal = { code: "token.none" }, more?: object) =>
  Object.assign(new Error(problem.detail ?? problem.code), { code: problem.code, problem, ...more });

function checkToken(token: unknown): asserts token is string {
  if (token === "" || token == null) throw noToken();
  // Other characters would end the header or begin another one (RFC 6750 §2.1).
  if (typeof token !== "string" || !/^[!-~]+$/.test(token)) {
    throw noToken({ code: "token.wrong", detail: "token() must return text or null" });
  }
}

/** Returns the claims of a JWT, or nothing if the token is not a readable JWT. */
export function claims(token: string): Partial<State> {
  try {
    const bytes = atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"));
    // Decodes UTF-8 without TextDecoder, which React Native lacks.
    return claimed(JSON.parse(decodeURIComponent(escape(bytes))));
  } catch {
    return {};
  }
}

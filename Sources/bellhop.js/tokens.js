// Runs the token machine. The app's provider is called once for all waiting callers.
import { claimed } from "./machines/identity.js";
import * as machine from "./machines/token.js";
import { run } from "./stores/store.js";

/** Limit for a provider's answer, so that a provider that never answers does not block everything. */
const askMsMax = 30_000;

/** @typedef {import("./types").Refusal} Refusal */

/**
 * @param {object} parts
 * @param {import("./types").Provider} parts.provider
 * @param {import("./types").Clock} parts.clock
 * @param {string | null} [parts.user]
 * @param {string | null} [parts.identity] the identity that every token must have
 * @param {import("./internal").Identify} [parts.identify] asks the service for the identity of a token
 * @param {(user: string | null) => void} [parts.onUser] the app gave a token of another identity
 * @param {(streamId: string, token: string) => void} [parts.onRenew]
 * @param {() => void} [parts.onReconnect]
 */
export function tokens({ provider, clock, user = null, identity = null, identify, onUser, onRenew, onReconnect }) {
  /** @type {((token: string | null) => void)[]} */
  let waiting = [];
  /** The service's answer because of which there is no token.
   * @type {import("./types").Answer | undefined} */
  let answer;
  const it = run({ initial: machine.initial, receive: machine.receive }, { user, identity }, clock, perform);

  /** @param {import("./types").Action} action */
  function perform(action) {
    switch (action.do) {
      case "ask": return void ask(action.spent);
      case "give": return give(action.token);
      case "renew": return onRenew?.(action.streamId, action.token);
      case "reconnect": return onReconnect?.();
      case "user": return onUser?.(action.user);
    }
  }

  /** @param {string | null} token */
  function give(token) {
    const those = waiting;
    waiting = [];
    for (const resolve of those) resolve(token);
  }

  /** @param {string | null} spent */
  async function ask(spent) {
    const stop = clock.after(askMsMax, () => it.receive({ type: "failed", problem: { code: "token.slow" } }));
    answer = undefined;
    try {
      const token = await provider({ fresh: spent !== null, spent, problem: it.get().refused });
      checkToken(token);
      const read = claims(token);
      it.receive({ type: "token", token, ...read, identity: await identify?.(token, read) });
    } catch (/** @type {any} */ error) {
      ({ answer } = error ?? {});
      if (error?.token && answer?.status === 401) it.receive({ type: "refused", token: error.token, problem: error.problem });
      else it.receive({ type: "failed", problem: error?.problem ?? { code: "token.failed", detail: String(error) } });
    } finally {
      stop();
    }
  }

  /** Resolves with a valid token, other than the spent one if the app has another; null if there is none.
   * @param {string | null} [spent] @param {Refusal | null} [problem] @returns {Promise<string | null>} */
  const get = (spent, problem) => new Promise((resolve) => {
    waiting.push(resolve);
    it.receive({ type: "need", spent, problem });
  });

  return {
    get,
    /** Resolves like `get`, but rejects if there is none.
     * @param {string | null} [spent] @param {Refusal | null} [problem] */
    async need(spent, problem) {
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

/** Makes the error of a call without a token.
 * @param {Refusal} [problem] @param {object} [more] */
export const noToken = (problem = { code: "token.none" }, more) =>
  Object.assign(new Error(problem.detail ?? problem.code), { code: problem.code, problem, ...more });

/** @param {unknown} token @returns {asserts token is string} */
function checkToken(token) {
  if (token === "" || token === null || token === undefined) throw noToken();
  // Other characters would end the header or begin another one (RFC 6750 §2.1).
  if (typeof token !== "string" || !/^[!-~]+$/.test(token)) {
    throw noToken({ code: "token.wrong", detail: "token() must return text or null" });
  }
}

/** Returns the claims of a JWT, or nothing if the token is not a readable JWT.
 * @param {string} token @returns {Partial<import("./machines/identity.js").State>} */
export function claims(token) {
  try {
    const bytes = atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"));
    // Decodes UTF-8 without TextDecoder, which React Native lacks.
    return claimed(JSON.parse(decodeURIComponent(escape(bytes))));
  } catch {
    return {};
  }
}

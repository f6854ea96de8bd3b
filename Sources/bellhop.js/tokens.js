// Runs the token machine. The app's provider is called once for all waiting callers.
import { claimed } from "./machines/identity.js";
import * as machine from "./machines/token.js";
import { run } from "./stores/store.js";

/** Limit for a provider's answer, so that a provider that never answers does not block everything. */
const askMsMax = 30_000;

/**
 * @param {object} parts
 * @param {(wanted: {fresh: boolean, spent: string | null}) => string | null | Promise<string | null>} parts.provider
 * @param {import("./types").Clock} parts.clock
 * @param {string | null} [parts.user]
 * @param {string | null} [parts.identity] the claims that every token must have
 * @param {(user: string | null) => void} [parts.onUser] the app gave a token of another identity
 * @param {(streamId: string, token: string) => void} [parts.onRenew]
 * @param {() => void} [parts.onReconnect]
 */
export function tokens({ provider, clock, user = null, identity = null, onUser, onRenew, onReconnect }) {
  /** @type {((token: string | null) => void)[]} */
  let waiting = [];
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
    try {
      const token = await provider({ fresh: spent !== null, spent });
      if (typeof token === "string" && token !== "") it.receive({ type: "token", token, ...claims(token) });
      else it.receive({ type: "failed", problem: { code: "token.none" } });
    } catch (error) {
      it.receive({ type: "failed", problem: { code: "token.failed", detail: String(error) } });
    } finally {
      stop();
    }
  }

  return {
    /** Resolves with a valid token, other than the spent one if the app has another; null if there is none.
     * @param {string | null} [spent] @returns {Promise<string | null>} */
    get: (spent) => new Promise((resolve) => {
      waiting.push(resolve);
      it.receive({ type: "need", spent });
    }),
    receive: it.receive,
    state: it.get,
    close() {
      it.close();
      give(null);
    },
  };
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

// Request calls: with a token, a client id, a time limit, and one retry with a fresh token after a 401.

import { parsed } from "./storage/keys.js";
import type { Answer, Clock, Refusal } from "./types.js";

/** What `token` throws, if the service is the reason that there is none. */
interface Unanswered {
  answer?: Answer;
}

/** Time limit of a call: without it, a hung server would hang its caller. */
const callMsMax = 30_000;

export function calls({ url, token, fetch, clock, clientId }: {
  url: string;
  /** A token, other than the refused one; rejects if there is none. */
  token: (spent?: string, problem?: Refusal) => Promise<string>;
  fetch?: typeof globalThis.fetch;
  clock: Clock;
  /** Sent with each call, so that this client knows its own echoes (R-SCH-FR-005). */
  clientId: string;
}) {
  // Called as a plain function: browsers refuse `fetch` as a method of another object.
  const request = fetch ?? globalThis.fetch;

  async function once(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<Answer> {
    const abort = new AbortController();
    const stop = clock.after(callMsMax, () => abort.abort());
    try {
      const response = await request(url + path, {
        method,
        headers: {
          "X-Client-Id": clientId,
          ...(body === undefined ? {} : { "Content-Type": "application/json" }),
          ...headers,
        },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: abort.signal,
        // This client manages the entity tags itself: the browser's cache would hide the 304.
        cache: "no-store",
        credentials: "omit",
      }).catch(explain);
      const text = await response.text();
      const retryAfterMs = afterMs(response.headers.get("retry-after"), clock.now());
      return { status: response.status, headers: Object.fromEntries(response.headers), body: parsed(text), retryAfterMs };
    } finally {
      stop();
    }
  }

  /** Rejects if there was no answer, or no token; any answer, also a refusal, resolves. */
  async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    checkPath(path);
    // A call may have a token of its own.
    if (headers.Authorization) return once(method, path, body, headers);
    const by = (bearer: string) =>
      once(method, path, body, { Authorization: `Bearer ${bearer}`, ...headers });
    try {
      const bearer = await token();
      const answer = await by(bearer);
      if (answer.status !== 401) return answer;
      const fresh = await token(bearer, answer.body).catch(() => null);
      return fresh && fresh !== bearer ? by(fresh) : answer;
    } catch (error) {
      // The service has refused the token, or has answered that it cannot say whose it is.
      if ((error as Unanswered).answer) return (error as Unanswered).answer as Answer;
      throw error;
    }
  }

  /** Sends a call like `call`; status 0 if there was no answer. */
  const attempt: typeof call = (...request) =>
    call(...request).catch((error) =>
      ({ status: 0, headers: {}, body: { code: error?.code, detail: String(error?.message ?? error) } }));

  return { call, attempt, clientId };
}

/** Only a page has an origin. */
let isExplained = !globalThis.location;

/** Explains the first failure of a page: the browser keeps the reason from it. */
function explain(error: unknown): never {
  if (!isExplained) console.warn(`bellhop: no answer. Is it up? Does its setting corsOrigins name ${location.origin}?`);
  isExplained = true;
  throw error;
}

export function checkPath(path: unknown) {
  if (typeof path !== "string" || path[0] !== "/") throw new TypeError(`a path begins with /, not as in "${path}"`);
}

/** Returns 128 random bits. React Native has no `randomUUID`, and Safari has it only on https. */
export function makeId() {
  const random = globalThis.crypto?.getRandomValues?.(new Uint8Array(16)) ??
    Uint8Array.from({ length: 16 }, () => Math.random() * 256);
  return Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Reads a date of HTTP in any of its three forms; NaN for others, some of which `Date.parse` would accept. */
function httpDate(value: string) {
  if (!/^(mon|tue|wed|thu|fri|sat|sun)/i.test(value)) return NaN;
  return Date.parse(value.endsWith("GMT") ? value : `${value} GMT`);
}

/** Returns `Retry-After`, given in seconds or as a date, in milliseconds. */
export function afterMs(value: string | null | undefined, now: number) {
  if (!value) return 0;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : httpDate(value) - now;
  return ms > 0 ? ms : 0;
}

// The session: a token, stored until the tab closes, and its connection to the service.
import { connect } from "../bellhop.js";
import { push } from "../bellhop-push.js";

const base = new URL("..", import.meta.url).href;
const storageKey = "bellhop console";

/** @type {{token: string, shop: string, backend: string} | null} */
export let session = read();
/** @type {any} the client of bellhop.js */
export let bell = null;
/** The time at which the current token expires, while the page asks for a new one; otherwise null. */
export let renewal = null;

const begun = new Set();
const changed = new Set();
let number = 0;
let given = "";

/** Calls `begin` with every new session. The function that `begin` returns is called at the end of the session. */
export const onSession = (begin) => void begun.add({ begin, end: null });
export const onRenewal = (listener) => void changed.add(listener);

function read() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(storageKey));
    return typeof kept?.token === "string" ? { shop: "", backend: "", ...kept } : null;
  } catch {
    return null;
  }
}

function keep() {
  if (session) sessionStorage.setItem(storageKey, JSON.stringify(session));
  else sessionStorage.removeItem(storageKey);
}

/** Returns the claims of a token; {} for a malformed token. */
export function claims(token) {
  return part(token, 1);
}

export function part(token, index) {
  try {
    const text = atob(token.split(".")[index].replace(/-/g, "+").replace(/_/g, "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (byte) => byte.charCodeAt(0))));
  } catch {
    return {};
  }
}

export const expiresAt = (token) => Number.isFinite(claims(token).exp) ? claims(token).exp * 1000 : null;

function setRenewal(wanted) {
  if (renewal === wanted) return;
  renewal = wanted;
  for (const listener of changed) listener();
}

/** Returns a token to bellhop.js. `fresh` requests another one, because the last one expires soon or was refused. */
function provide({ fresh }) {
  if (!session) return null;
  if (fresh && session.token === given) setRenewal(expiresAt(given) ?? 0);
  else setRenewal(null);
  given = session.token;
  return given;
}

export function open(next) {
  end();
  session = { token: next.token.trim(), shop: (next.shop ?? "").trim(), backend: (next.backend ?? "").trim() };
  keep();
  begin();
}

export function begin() {
  if (!session) return;
  number += 1;
  given = "";
  setRenewal(null);
  bell = connect({ url: base, token: provide, features: { push } });
  for (const one of begun) one.end = one.begin(bell, session) ?? null;
}

/** `isLeaving`: the user has signed out, so this device receives no more push messages. */
function end(isLeaving = false) {
  for (const one of begun) {
    one.end?.();
    one.end = null;
  }
  const last = bell;
  bell = null;
  if (isLeaving) last?.signOut().finally(() => last.close());
  else last?.close();
}

export function leave() {
  end(true);
  session = null;
  keep();
  setRenewal(null);
}

/** Continues the session with a new token. While the old token is valid, the stream continues without a break. */
export function renew(token) {
  const mine = claims(session.token).sub;
  if (claims(token).sub !== mine) return open({ ...session, token });
  session = { ...session, token: token.trim() };
  keep();
  setRenewal(null);
  const { status, streamId } = bell.connection.get();
  if (status !== "live") return bell.retry();
  // Renews the stream immediately; the library would ask for the token only after up to ten seconds.
  bell.call("PUT", `/v1/streams/${encodeURIComponent(streamId)}/token`, { token: session.token }).catch(() => {});
}

export function setBackend(backend) {
  session = { ...session, backend: backend.trim() };
  keep();
}

// MARK: Calls

export class Refusal extends Error {
  constructor({ status, body }) {
    const places = (body?.errors ?? []).slice(0, 3).map(({ pointer, detail }) => `${pointer} ${detail}`).join("; ");
    super(places || body?.detail || `The service answered ${status}.`);
    this.status = status;
    this.code = body?.code ?? "";
  }
}

/** The error of a call whose session has ended meanwhile. */
export class Stale extends Error {}

/** Calls the API as the user of the session; rejects with a Refusal. */
export async function api(method, path, body, headers) {
  const mine = number;
  if (!bell) throw new Stale();
  const answer = await bell.call(method, path, body, headers).catch((error) => {
    throw mine === number ? new Error(`The service did not answer: ${error.message}.`) : new Stale();
  });
  if (mine !== number || !bell) throw new Stale();
  if (answer.status >= 400) throw new Refusal(answer);
  return answer.body;
}

/** Calls the API with a backend token. */
export async function backendCall(token, path, body) {
  const response = await fetch(new URL(`.${path}`, base), {
    method: "POST", headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(body), cache: "no-store", credentials: "omit",
  });
  const answer = { status: response.status, body: await response.json().catch(() => ({})) };
  if (!response.ok) throw new Refusal(answer);
  return answer.body;
}

/** Fetches a document of the service, without a token. */
export async function fetchText(path) {
  const response = await fetch(new URL(`.${path}`, base), { cache: "no-store", credentials: "omit" });
  if (!response.ok) throw new Refusal({ status: response.status, body: await response.json().catch(() => ({})) });
  return response.text();
}

/** The feature sets that the service has; null if it does not answer: then each part shows its own error. */
const sets = await fetchText("/v1/config").then((text) => JSON.parse(text).features, () => null);
export const has = (set) => sets === null || sets.includes(set);
for (const part of document.querySelectorAll("[data-set]")) part.hidden = !has(part.dataset.set);

export const serviceURL = base.replace(/\/$/, "");

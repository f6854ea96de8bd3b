// Whose session it is: the token, kept while the tab lives, and the bell that is connected with it.
import { connect } from "../bellhop.js";

const base = new URL("..", import.meta.url).href;
const storageKey = "bellhop console";

/** @type {{token: string, shop: string, backend: string} | null} */
export let session = read();
/** @type {any} the connection of bellhop.js */
export let bell = null;
/** Until when a successor of the token is waited for; null: none is wanted. */
export let renewal = null;

const begun = new Set();
const changed = new Set();
let number = 0;
let given = "";

/** Calls back with every new session; what it returns is called at its end. */
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

/** What a token says of itself; {} where it is none. */
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

/** bellhop.js asks for a token, and for another one before it runs out or when it was refused. */
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
  bell = connect({ url: base, token: provide });
  for (const one of begun) one.end = one.begin(bell, session) ?? null;
}

function end() {
  for (const one of begun) {
    one.end?.();
    one.end = null;
  }
  bell?.close();
  bell = null;
}

export function leave() {
  end();
  session = null;
  keep();
  setRenewal(null);
}

/** The token's successor: the stream goes on with it, without a break where the old one still serves. */
export function renew(token) {
  const mine = claims(session.token).sub;
  if (claims(token).sub !== mine) return open({ ...session, token });
  session = { ...session, token: token.trim() };
  keep();
  setRenewal(null);
  const { status, streamId } = bell.connection.get();
  if (status !== "live") return bell.retry();
  // At once, while the old one still serves: the library asks for another only every ten seconds.
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

/** The answer to somebody who is not here any more. */
export class Stale extends Error {}

/** What the session's user asks; rejects with a Refusal. */
export async function api(method, path, body, headers) {
  const mine = number;
  if (!bell) throw new Stale();
  const answer = await bell.call(method, path, body, headers).catch((error) => {
    throw mine === number ? new Error(`The service does not answer (${error.message}).`) : new Stale();
  });
  if (mine !== number || !bell) throw new Stale();
  if (answer.status >= 400) throw new Refusal(answer);
  return answer.body;
}

/** What a backend asks, with a token of its own. */
export async function backendCall(token, path, body) {
  const response = await fetch(new URL(`.${path}`, base), {
    method: "POST", headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(body), cache: "no-store", credentials: "omit",
  });
  const answer = { status: response.status, body: await response.json().catch(() => ({})) };
  if (!response.ok) throw new Refusal(answer);
  return answer.body;
}

/** What the service itself tells about itself, without a user. */
export async function fetchText(path) {
  const response = await fetch(new URL(`.${path}`, base), { cache: "no-store", credentials: "omit" });
  if (!response.ok) throw new Refusal({ status: response.status, body: await response.json().catch(() => ({})) });
  return response.text();
}

export const serviceURL = base.replace(/\/$/, "");

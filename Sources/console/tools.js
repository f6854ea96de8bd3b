// Tools for developers: the token as the service reads it, subscriptions, and the explanation of a delivery.
import { $, el, everySecond, list, problem, relative, show, write } from "./dom.js";
import { backendToken, drawShotHint, isBackend } from "./cards.js";
import { knownIds, onExplain } from "./events.js";
import {
  api, backendCall, bell, claims, expiresAt, onRenewal, onSession, part, session, setBackend, Stale,
} from "./session.js";

// MARK: The token

const pair = (name, value) => ({
  key: name, sign: value, make: () => el("div", {}, el("dt", {}, name), el("dd", {}, value)),
});

function drawToken(me) {
  const claimed = claims(session.token);
  const scope = me?.scope ?? [];
  const rows = [
    ["User", me?.userId ?? claimed.sub], ["Tenant", me?.tenant], ["Role", me?.role],
    ["Tier", me?.tier], ["Scope", scope.slice(0, 12).join(", ") + (scope.length > 12 ? ", …" : "")],
    ["Algorithm", part(session.token, 0).alg],
  ].filter(([, value]) => value);
  list($("claims"), rows.map(([name, value]) => pair(name, value)));
  write("token-raw", JSON.stringify(claimed, null, 2));
}

function drawExpiry(now = Date.now()) {
  const at = session && expiresAt(session.token);
  write("token-expiry", !at ? "" : at > now ? `expires ${relative(at, now)}` : `expired ${relative(at, now)}`);
}

// MARK: Subscriptions

/** @type {{topic?: string, table?: any, off?: () => void, name: string}[]} */
let watches = [];
/** The key under which this page requests its tables. */
let tablesKey = {};

function drawWatches() {
  list($("watches"), watches.map((watch) => ({
    key: watch.name, sign: watch.name,
    make: () => el("li", {}, el("button", { "data-name": "stop", onclick: () => stop(watch) },
      watch.name, el("span", { "aria-hidden": "true" }, " ×"), el("span", { class: "hidden" }, ": unsubscribe"))),
  })));
}

const tables = (all) => all.filter((watch) => watch.table).map(({ table }, index) => ({ ...table, id: String(index) }));

function stop(watch) {
  watches = watches.filter((other) => other !== watch);
  if (watch.off) watch.off();
  else bell.tables.set(tablesKey, { tables: tables(watches) });
  problem("watch-problem", "");
  drawWatches();
}

function watchTopic(topic) {
  if (watches.some((watch) => watch.topic === topic)) return;
  const watch = { topic, name: topic };
  // The other topics go on; this one is taken back once it is on the list.
  watch.off = bell.subscribe([topic], ({ problem: why }) => queueMicrotask(() => {
    stop(watch);
    problem("watch-problem", `${topic}: ${why.detail ?? why.code}`);
  }));
  watches = [...watches, watch];
  problem("watch-problem", "");
  drawWatches();
}

async function watchTable(text, filter) {
  const [table, schema] = text.split(".").reverse();
  const wanted = { ...(schema ? { schema } : {}), table, ...(filter ? { filter } : {}) };
  const name = filter ? `${text} ${filter}` : text;
  if (watches.some((watch) => watch.name === name)) return;
  const answer = await bell.tables.set(tablesKey, { tables: tables([...watches, { table: wanted, name }]) });
  if (answer.status >= 400) {
    const { pointer, detail } = answer.body ?? {};
    bell.tables.set(tablesKey, { tables: tables(watches) });
    const place = pointer ? `${pointer} ${detail}` : detail;
    return problem("watch-problem", place || `The service answered ${answer.status}.`);
  }
  if (answer.status === 0) return;
  problem("watch-problem", "");
  watches = [...watches, { table: wanted, name }];
  drawWatches();
}

$("watch-topic").addEventListener("submit", (event) => {
  event.preventDefault();
  try {
    watchTopic($("topic").value.trim());
    $("topic").value = "";
  } catch (error) {
    problem("watch-problem", error.message);
  }
});
$("watch-table").addEventListener("submit", async (event) => {
  event.preventDefault();
  await watchTable($("table").value.trim(), $("filter").value.trim());
  if ($("watch-problem").hidden) $("table").value = $("filter").value = "";
});

// MARK: Delivery of an event

function drawExplanation(found, isYou) {
  const name = isYou ? "You" : found.caller.userId;
  const verb = isYou ? ["receive", "do not receive"] : ["receives", "does not receive"];
  const keys = (found.keys ?? []).map(({ key, granted, membership }) => el("li", { class: granted ? "granted" : "" },
    el("code", {}, key), granted ? `granted${membership ? ` through ${membership}` : ""}` : "not granted"));
  const invalid = (found.invalidations ?? []).map(({ key, received }) =>
    el("li", { class: received ? "granted" : "" }, el("code", {}, key.join("/")), received ? "marked stale" : "not received"));
  const { event, caller } = found;
  $("explanation").replaceChildren(
    el("p", { class: found.delivered ? "verdict yes" : "verdict no" },
      el("strong", {}, `${name} ${verb[found.delivered ? 0 : 1]} it. `), found.reason),
    el("p", { class: "hint" }, `${event.name}${event.topic ? ` of the topic ${event.topic}` : ""}; ` +
      `receiver: ${caller.userId} of ${caller.tenant}, ${caller.role}.`),
    ...(keys.length ? [el("h3", {}, "Keys of the audience"), el("ul", { class: "keys" }, keys)] : []),
    ...(invalid.length ? [el("h3", {}, "Invalidated queries"), el("ul", { class: "keys" }, invalid)] : []));
}

/** Returns the receiver to explain: a token, claims as JSON, or the session's own token. */
function receiverOf(text) {
  if (!text) return { token: session.token };
  if (!text.startsWith("{")) return { token: text };
  try {
    return { claims: JSON.parse(text) };
  } catch {
    throw new Error("The claims are not valid JSON.");
  }
}

async function explain() {
  const given = $("explain-backend").value.trim();
  if (given && !isBackend(claims(given))) throw new Error("This token has another role than service_role.");
  if (given) setBackend(given);
  drawBackendPart();
  const backend = backendToken();
  if (!backend) throw new Error("Explanations require a backend token, with the role service_role.");
  const text = $("explain-whom").value.trim();
  const receiver = receiverOf(text);
  const topics = bell.connection.get().topics.filter((topic) => topic !== "personal");
  const found = await backendCall(backend, "/v1/explain", {
    eventId: $("explain-event").value.trim(), ...receiver, ...(text ? {} : { topics, tables: tables(watches) }),
  });
  drawExplanation(found, text === "");
}

function drawBackendPart() {
  show("explain-backend-part", !backendToken());
  drawShotHint();
}

function refuse(error) {
  if (error instanceof Stale) return;
  $("explanation").replaceChildren(el("p", { class: "problem" }, error.message));
}

$("explain").addEventListener("submit", (event) => {
  event.preventDefault();
  explain().catch(refuse);
});
$("explain-event").addEventListener("focus", () => {
  $("known-events").replaceChildren(...knownIds().map(({ id, name }) => el("option", { value: id }, name)));
});
onExplain((id) => {
  $("explain-event").value = id;
  $("explain-event").scrollIntoView({ block: "center" });
  if (backendToken()) explain().catch(refuse);
  else $("explain-backend").focus();
});

/** Reads the token again if it has changed. */
let lookAtToken = () => {};
onRenewal(() => lookAtToken());

onSession((connected) => {
  watches = [];
  tablesKey = {};
  let of = "";
  drawWatches();
  drawToken(null);
  drawExpiry();
  drawBackendPart();
  $("explanation").replaceChildren();
  lookAtToken = () => {
    const status = connected.connection.get();
    // Requests what the service reads in the token, once for each token.
    if (status.status !== "live" || of === session.token) return;
    of = session.token;
    drawExpiry();
    api("GET", "/v1/me").then((me) => {
      drawToken(me);
      dispatchEvent(new CustomEvent("bellhop:me", { detail: me }));
    }, () => { of = ""; });
  };
  const changed = () => lookAtToken();
  const offs = [connected.connection.subscribe(changed), () => { lookAtToken = () => {}; }];
  changed();
  return () => offs.forEach((off) => off());
});

everySecond(drawExpiry);

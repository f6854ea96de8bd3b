// The state of the connection, its details and its history. "Live" is shown only while the stream is open.
import { $, el, everySecond, list, problem, relative, seconds, show, when, write } from "./dom.js";
import { bell, expiresAt, leave, onRenewal, onSession, renew, renewal, session } from "./session.js";

const timelineMax = 50;
/** How long bellhop.js waits for data before it gives up a connection. The service sends a comment every 15 seconds. */
const silenceMs = 60_000;
/** @type {{at: number, what: string, detail: string, state: string}[]} newest first */
let timeline = [];
let lastId = "";
let lastEventAt = 0;
let openedAt = 0;
let readyMs = null;
/** The time up to which the shown data is current; 0 while the stream is open. */
let currentUntil = 0;
let shown = "";

const names = {
  connecting: "Connecting", live: "Live", waiting: "Waiting", unreachable: "Unreachable", offline: "Offline",
  refused: "Refused", closed: "Closed", expired: "Expired",
};

const reasons = {
  lost: "the connection broke", silence: "no data arrived for a minute", timeout: "no answer within 10 seconds",
  closed: "the service closed the stream", offline: "this device has no network", overflow: "too much data arrived at once",
  "token.none": "there is no valid token", "token.slow": "the new token took too long",
  background: "the page was in the background",
};

/** Returns the state to show. An expired or refused token is shown as such, although the library waits to retry. */
function present(status, now) {
  const { status: name, reason } = status;
  if (name === "live" || name === "offline") return name;
  // The connection has not begun, or another tab takes it over.
  if (name === "closed" && !reason) return "connecting";
  const at = expiresAt(session.token);
  if (at !== null && now >= at || reason?.code === "invalid_token.expired") return "expired";
  if (reason?.status === 401) return "refused";
  return name;
}

function why(reason) {
  if (!reason) return "";
  if (reason.code === "closed" && reason.detail) return `the service closed the stream: ${reason.detail}`;
  return reasons[reason.code] ?? reason.detail ?? reason.code ?? "";
}

const sentence = (text) => text ? text[0].toUpperCase() + text.slice(1).replace(/[.]$/, "") + "." : "";

function draw(now = Date.now()) {
  if (!bell) return;
  const status = bell.connection.get();
  const state = present(status, now);
  $("state").dataset.state = state;
  write("state-name", names[state] ?? state);
  // Without a stream, the delivery test would see no event.
  $("try").disabled = state !== "live";
  drawNotice(status, state, now);
  drawDetails(status, state, now);
}

function drawNotice(status, state, now) {
  const next = status.retryAt === null ? "" : status.retryAt <= now ? "Retrying."
    : `Next retry in ${seconds(status.retryAt - now)} s.`;
  const age = currentUntil ? `The shown data is from ${relative(currentUntil, now)}.` : "";
  const at = expiresAt(session.token);
  let text = "";
  let more = "";
  if (state === "expired") {
    text = "This token has expired.";
    more = `${age} Paste a new token to continue.`;
  } else if (state === "refused") {
    text = `The service refuses the connection: ${sentence(why(status.reason))}`;
    more = age;
  } else if (state === "offline") {
    text = "This device is offline.";
    more = `${age} The page continues when the network is back.`;
  } else if (state === "unreachable") {
    text = "The service cannot be reached.";
    more = `${sentence(why(status.reason))} ${age}`;
  } else if (state === "waiting" || (state === "connecting" && status.tries > 0)) {
    text = `Not live: ${why(status.reason) || "the connection broke"}.`;
    more = `${age} ${next}`;
  } else if (renewal !== null && at !== null && at - now < 120_000) {
    text = "This token expires soon.";
    more = `It is valid for ${seconds(at - now)} s more. Paste a new token to continue without a break.`;
  }
  const wantsToken = state === "expired" || (state === "refused" && status.reason?.status === 401) ||
    (renewal !== null && state === "live" && text !== "");
  write("notice-text", text);
  write("notice-more", more.trim());
  $("notice").dataset.state = state;
  show("notice", text !== "");
  show("renewal", wantsToken);
  show("notice-retry", !wantsToken && ["waiting", "unreachable", "refused"].includes(state));
}

function drawDetails(status, state, now) {
  const rows = [
    ["State", names[state] ?? state],
    ["Reason", state === "live" ? "" : sentence(why(status.reason))],
    ["Next retry", status.retryAt > now ? `in ${seconds(status.retryAt - now)} s, attempt ${status.tries + 1}` : ""],
    ["Stream", status.streamId ?? ""],
    ["Topics", status.topics.join(", ")],
    ["Opened in", state === "live" && readyMs !== null ? `${readyMs} ms` : ""],
    ["Last event id", lastId],
    ["Last event", lastEventAt ? relative(lastEventAt, now) : ""],
  ].filter(([, value]) => value);
  list($("connection"), rows.map(([name, value]) => ({
    key: name, sign: value, make: () => el("div", {}, el("dt", {}, name), el("dd", {}, value)),
  })));
}

function note(what, detail, state) {
  if (timeline[0]?.what === what && timeline[0].detail === detail) return;
  timeline = [{ at: Date.now(), what, detail, state }, ...timeline].slice(0, timelineMax);
  list($("timeline"), timeline.map((entry) => ({
    key: `${entry.at} ${entry.what}`, sign: entry,
    make: () => el("li", { "data-state": entry.state },
      el("b", {}, entry.what), el("span", {}, entry.detail), when(entry.at)),
  })));
}

function noteStatus(status) {
  const state = present(status, Date.now());
  const sign = `${state} ${status.streamId} ${status.tries} ${status.reason?.code}`;
  if (sign === shown) return;
  shown = sign;
  if (state === "connecting") openedAt = performance.now();
  if (state === "live") {
    readyMs = openedAt ? Math.round(performance.now() - openedAt) : null;
    openedAt = 0;
    currentUntil = 0;
    note("Live", readyMs === null ? "" : `after ${readyMs} ms${lastId ? `, resumed after ${lastId}` : ""}`, state);
    return;
  }
  if (!currentUntil && timeline.some((entry) => entry.state === "live")) {
    // A silent connection is given up after a minute. The data is as old as the last sign of life.
    currentUntil = Date.now() - (status.reason?.code === "silence" ? silenceMs : 0);
  }
  const wait = status.retryAt ? `, next retry in ${seconds(status.retryAt - Date.now())} s` : "";
  note(names[state] ?? state, `${why(status.reason)}${wait}`, state);
}

onSession((connected) => {
  timeline = [];
  lastId = shown = "";
  lastEventAt = currentUntil = 0;
  openedAt = performance.now();
  readyMs = null;
  const changed = () => {
    noteStatus(connected.connection.get());
    draw();
  };
  const offs = [
    connected.connection.subscribe(changed),
    connected.on("*", ({ id, name }) => {
      lastId = id || lastId;
      lastEventAt = Date.now();
      if (name === "stream:resync") note("Resync", "missed events cannot be replayed, so all data is fetched again", "live");
      if (name === "stream:closing") note("Closing", "announced by the service", "waiting");
    }),
  ];
  list($("timeline"), []);
  changed();
  return () => offs.forEach((off) => off());
});

onRenewal(draw);
everySecond(draw);

$("notice-retry").addEventListener("click", () => bell?.retry());
$("renewal").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = $("renewal-token").value.trim();
  $("renewal-token").value = "";
  if (token) renew(token);
  draw();
});
$("leave").addEventListener("click", () => {
  leave();
  problem("problem", "");
  dispatchEvent(new Event("bellhop:session"));
});

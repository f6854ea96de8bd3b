// How the connection stands, said as it is: "Live" only while it is. And what has happened to it.
import { $, el, everySecond, list, problem, relative, seconds, show, when, write } from "./dom.js";
import { bell, expiresAt, leave, onRenewal, onSession, renew, renewal, session } from "./session.js";

const timelineMax = 50;
/** @type {{at: number, what: string, detail: string, state: string}[]} the newest first */
let timeline = [];
let lastId = "";
let lastEventAt = 0;
let openedAt = 0;
let readyMs = null;
let notLiveSince = 0;
let shown = "";

const names = {
  connecting: "Connecting", live: "Live", waiting: "Waiting", unreachable: "Unreachable", offline: "Offline",
  refused: "Refused", closed: "Closed", expired: "Expired",
};

const reasons = {
  lost: "the connection broke", silence: "nothing was heard for a minute", timeout: "no answer within 10 seconds",
  closed: "the service closed the stream", offline: "this device has no network", overflow: "too much came at once",
  "token.none": "there is no token that serves", "token.slow": "no token came in time", background: "the page was away",
};

/** The state as people see it: a token that is over or refused is more than a wait. */
function present(status, now) {
  const { status: name, reason } = status;
  if (name === "live" || name === "offline") return name;
  // Not begun yet, or handed from one tab to another.
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
  // What was sent now could not be seen to arrive.
  $("try").disabled = state !== "live";
  drawNotice(status, state, now);
  drawDetails(status, state, now);
}

function drawNotice(status, state, now) {
  const next = status.retryAt === null ? "" : status.retryAt <= now ? "Trying again."
    : `Next try in ${seconds(status.retryAt - now)} s.`;
  const isOld = notLiveSince ? `What you see is from ${relative(notLiveSince, now)}.` : "";
  const at = expiresAt(session.token);
  let text = "";
  let more = "";
  if (state === "expired") {
    text = "This token has expired.";
    more = `${isOld} Paste its successor to go on where you were.`;
  } else if (state === "refused") {
    text = `The service refuses: ${sentence(why(status.reason))}`;
    more = isOld;
  } else if (state === "offline") {
    text = "This device is offline.";
    more = `${isOld} The page goes on by itself when the network is back.`;
  } else if (state === "unreachable") {
    text = "The service cannot be reached.";
    more = `${sentence(why(status.reason))} ${isOld}`;
  } else if (state === "waiting" || (state === "connecting" && status.tries > 0)) {
    text = `Not live: ${why(status.reason) || "the connection broke"}.`;
    more = `${isOld} ${next}`;
  } else if (renewal !== null && at !== null && at - now < 120_000) {
    text = "This token runs out soon.";
    more = `It serves for ${seconds(at - now)} s more. Paste its successor, and the stream goes on without a break.`;
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
    ["Next try", status.retryAt > now ? `in ${seconds(status.retryAt - now)} s, try ${status.tries + 1}` : ""],
    ["Stream", status.streamId ?? ""],
    ["Topics", status.topics.join(", ")],
    ["Opened in", state === "live" && readyMs !== null ? `${readyMs} ms` : ""],
    ["Last id", lastId],
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
    notLiveSince = 0;
    note("Live", readyMs === null ? "" : `after ${readyMs} ms${lastId ? `, behind ${lastId}` : ""}`, state);
    return;
  }
  if (!notLiveSince && timeline.some((entry) => entry.state === "live")) notLiveSince = Date.now();
  const wait = status.retryAt ? `, next try in ${seconds(status.retryAt - Date.now())} s` : "";
  note(names[state] ?? state, `${why(status.reason)}${wait}`, state);
}

onSession((connected) => {
  timeline = [];
  lastId = shown = "";
  lastEventAt = notLiveSince = 0;
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
      if (name === "stream:resync") note("All is fetched anew", "what was missed cannot be replayed", "live");
      if (name === "stream:closing") note("Closing announced", "by the service", "waiting");
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

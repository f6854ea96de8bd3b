// The list of received events: the latest five on the live view, and all with filter, pause and details under Develop.
import { $, copy, counted, el, list, show, when, write } from "./dom.js";
import { onSession, serviceURL } from "./session.js";

/** Limits that keep drawing fast. */
const eventsMax = 300;
const shownMax = 100;

/** Newest first.
 * @type {{number: number, at: number, name: string, data: any, id: string, before: string, text: string}[]} */
let events = [];
let total = 0;
let lastId = "";
let isPaused = false;
/** The events that are shown while the list is paused. */
let frozen = [];
let asked = "";
const open = new Set();
let explain = () => {};

export const onExplain = (run) => { explain = run; };
export const knownIds = () => events.filter((event) => event.id).slice(0, 30);

const pretty = (data) => JSON.stringify(data, null, 2);

/** Returns a command that resumes the stream before the event, so that the event is replayed first. */
function curl(event) {
  const from = event.before ? ` -H 'Last-Event-ID: ${event.before}'` : "";
  return `curl -N -H "Authorization: Bearer $TOKEN"${from} '${serviceURL}/v1/stream'`;
}

function details(event) {
  const button = (name, run) => el("button", { "data-name": name, onclick: (click) => run(click.currentTarget) }, name);
  return el("div", { class: "opened" },
    el("pre", { tabindex: "0", "aria-label": `Data of ${event.name}` }, pretty(event.data)),
    el("div", { class: "actions" },
      button("Copy JSON", (node) => copy(pretty(event.data), node)),
      button("Copy as curl", (node) => copy(curl(event), node)),
      event.id && button("Explain delivery", () => explain(event.id)),
      el("span", { class: event.id ? "hint mono" : "hint" }, event.id || "without an id, so it is not replayed")));
}

function make(event) {
  const node = el("details", { open: open.has(event.number) },
    el("summary", {}, el("b", {}, event.name), el("code", {}, event.text), when(event.at)));
  node.addEventListener("toggle", () => {
    if (node.open) open.add(event.number);
    else open.delete(event.number);
    if (node.open && !node.querySelector(".opened")) node.append(details(event));
  });
  if (node.open) node.append(details(event));
  return el("li", {}, node);
}

function draw() {
  const wanted = asked.toLowerCase();
  const from = isPaused ? frozen : events;
  const found = from.filter((event) => !wanted || `${event.name} ${event.text}`.toLowerCase().includes(wanted));
  list($("log"), found.slice(0, shownMax).map((event) => ({
    key: String(event.number), sign: event.number, make: () => make(event),
  })));
  const missed = isPaused ? (events[0]?.number ?? 0) - (frozen[0]?.number ?? 0) : 0;
  const all = total ? counted(total, "event") : "";
  write("events-count", missed > 0 ? `${counted(missed, "event")} received while paused` : all);
  write("log-empty", from.length > 0 ? "No event matches the filter." : "No events yet.");
  show("log-empty", found.length === 0);
}

function drawLatest() {
  const latest = events.slice(0, 5);
  show("card-latest", latest.length > 0);
  list($("latest"), latest.map((event) => ({
    key: String(event.number), sign: event.number,
    make: () => el("li", {}, el("b", {}, event.name), el("code", {}, event.text), when(event.at)),
  })));
}

function clear() {
  events = frozen = [];
  open.clear();
  draw();
  drawLatest();
}

let isDrawing = false;
/** Draws at most once per frame, and every 250 ms in a background page, which has no frames. */
function drawSoon() {
  if (isDrawing) return;
  isDrawing = true;
  const run = () => {
    isDrawing = false;
    draw();
    drawLatest();
  };
  if (document.hidden) setTimeout(run, 250);
  else requestAnimationFrame(run);
}

onSession((connected) => {
  total = 0;
  lastId = "";
  clear();
  return connected.on("*", ({ name, data, id }) => {
    // The outbox of the library reports to the app under these names; they are not events of the stream.
    if (name.startsWith("outbox:")) return;
    total += 1;
    const event = { number: total, at: Date.now(), name, data, id, before: lastId, text: JSON.stringify(data) ?? "" };
    events = [event, ...events].slice(0, eventsMax);
    lastId = id || lastId;
    drawSoon();
  });
});

$("events-filter").addEventListener("input", () => {
  asked = $("events-filter").value.trim();
  draw();
});
$("events-pause").addEventListener("click", () => {
  isPaused = !isPaused;
  frozen = events;
  $("events-pause").setAttribute("aria-pressed", String(isPaused));
  write("events-pause", isPaused ? "Resume" : "Pause");
  draw();
});
$("events-clear").addEventListener("click", () => {
  total = 0;
  clear();
});

// The operations view: the service's metrics from /metrics, by replica and summed, and the accuracy of wait estimates.
import { $, el, list, problem, show, when, write } from "./dom.js";
import { createPlot, digits, svg } from "./plots.js";
import { api, fetchText, onSession } from "./session.js";

const sampleMs = 2000;
/** Five minutes. */
const samplesMax = 150;
/** The shortest time axis, one minute. */
const samplesMin = 30;
/** The number of intervals for a percentile. A percentile of one interval would jump. */
const windowIntervals = 5;
/** A replica that has not answered for this long is left out of the sums. A balancer can skip it a few times. */
const freshMs = 10_000;
/** A replica that has not answered for this long is forgotten. */
const forgottenMs = 60_000;
/** Two answers of a replica within this time would give rates with large errors, so the second is ignored. */
const intervalMsMin = 1000;
/** The maximum number of requests at once. They go through a load balancer to different replicas. */
const requestsMax = 8;

/** One process of the service. A restart begins a new one, because its counters begin at 0.
 * @typedef {{key: string, name: string, version: string, startedAt: number, samples: Sample[]}} Replica
 * @typedef {{at: number, values: Map<string, number>}} Sample */
/** @type {Map<string, Replica>} */
let replicas = new Map();
/** The figures of each sampling: by replica, and for all ("").
 * @type {{at: number, figures: Map<string, (number | null)[]>}[]} */
let samplings = [];
/** The key of the replica that is shown; "" shows the sum. */
let selected = "";
let timer = 0;
let isShown = false;

// MARK: Reading

/** Parses Prometheus' text into values by series: the name with its labels. */
function parse(text) {
  const values = new Map();
  for (const line of text.split("\n")) {
    if (line === "" || line[0] === "#") continue;
    const space = line.lastIndexOf(" ");
    values.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return values;
}

const named = (values, name) => [...values].filter(([key]) => key === name || key.startsWith(`${name}{`));
const sum = (values, name, keep = () => true) =>
  named(values, name).reduce((all, [key, value]) => keep(key) ? all + value : all, 0);
const label = (key, name) => key.match(new RegExp(`${name}="([^"]*)"`))?.[1] ?? "";
const isRefusal = (key) => /status="[45]/.test(key);
const last = (replica) => replica.samples[replica.samples.length - 1];
const isFresh = (replica, now) => now - last(replica).at < freshMs;

/** Assigns an answer to the replica that gave it. */
function take(values) {
  const at = Date.now();
  const [build] = named(values, "bellhop_build_info")[0] ?? [""];
  const startedAt = 1000 * (values.get("process_start_time_seconds") ?? 0);
  const key = `${label(build, "replica")} ${startedAt}`;
  const known = replicas.get(key) ??
    { key, name: label(build, "replica") || "replica", version: label(build, "version"), startedAt, samples: [] };
  replicas.set(key, known);
  if (known.samples.length > 0 && at - last(known).at < intervalMsMin) return;
  known.samples = [...known.samples, { at, values }].slice(-windowIntervals - 1);
}

// MARK: Figures

const gauge = (name, scale = 1) => ({ samples }) => {
  const value = samples[samples.length - 1].values.get(name);
  return value === undefined ? null : value * scale;
};

/** Returns the growth of a counter per second between the last two samples; null before there are two. */
const perSecond = (read) => ({ samples }) => {
  const [before, after] = samples.slice(-2);
  if (!after) return null;
  return Math.max(0, read(after.values) - read(before.values)) / ((after.at - before.at) / 1000);
};

/** Returns the growth of a histogram's buckets within the window, by upper bound. */
function growth({ samples }, name) {
  const [before, after] = [samples[0], samples[samples.length - 1]];
  if (before === after) return [];
  return named(after.values, `${name}_bucket`).map(([key, count]) =>
    [Number(label(key, "le").replace("+Inf", "Infinity")), count - (before.values.get(key) ?? 0)]);
}

/** Returns a percentile in milliseconds over the histograms of several replicas, interpolated within a bucket. */
const percentile = (name, share) => (some) => {
  const merged = new Map();
  for (const [end, count] of some.flatMap((replica) => growth(replica, name))) merged.set(end, (merged.get(end) ?? 0) + count);
  const steps = [...merged].map(([end, count]) => ({ end, count })).sort((a, b) => a.end - b.end);
  const all = steps[steps.length - 1]?.count ?? 0;
  if (!(all > 0)) return null;
  const index = steps.findIndex((step) => step.count >= share * all);
  const step = steps[index];
  const start = index === 0 ? 0 : steps[index - 1].end;
  if (step.end === Infinity) return start * 1000;
  const below = index === 0 ? 0 : steps[index - 1].count;
  return 1000 * (start + (step.end - start) * (share * all - below) / Math.max(1, step.count - below));
};

/** Returns the sum of a figure over several replicas; null if no replica has it. */
const summed = (of) => (some) => {
  const values = some.map(of).filter((value) => value !== null);
  return values.length === 0 ? null : values.reduce((all, value) => all + value, 0);
};

const requests = perSecond((values) => sum(values, "bellhop_http_requests_total"));
const delivered = perSecond((values) => sum(values, "bellhop_stream_events_total"));
const commitTime = "bellhop_database_commit_duration_seconds";

/** The plots. Each line computes its figure from the replicas that are shown. */
const plots = [
  { name: "Open streams", unit: "", lines: [{ of: summed(gauge("bellhop_streams_open")) }] },
  { name: "Delivered events", unit: "per second", lines: [{ of: summed(delivered) }] },
  { name: "Requests", unit: "per second", lines: [{ of: summed(requests) }] },
  {
    name: "Commit duration", unit: "ms",
    lines: [{ name: "median", of: percentile(commitTime, 0.5) }, { name: "99 %", of: percentile(commitTime, 0.99) }],
  },
  {
    name: "Refusals", unit: "per second", isAlarm: true,
    lines: [{ of: summed(perSecond((values) => sum(values, "bellhop_http_requests_total", isRefusal))) }],
  },
  { name: "Queued writes", unit: "", lines: [{ of: summed(gauge("bellhop_database_queue_depth")) }] },
  { name: "Memory", unit: "MB", lines: [{ of: summed(gauge("process_resident_memory_bytes", 1e-6)) }] },
  {
    name: "Resyncs", unit: "streams per second", isAlarm: true,
    lines: [{ of: summed(perSecond((values) => sum(values, "bellhop_stream_resyncs_total"))) }],
  },
].map((plot) => ({ ...plot, ...createPlot({ ...plot, lines: plot.lines.map(({ name }) => name ?? "") }) }));
const lines = plots.flatMap((plot) => plot.lines);

$("plots").replaceChildren(...plots.map(({ node }) => node));

/** Computes the figures of this moment. */
function remember(now) {
  for (const replica of replicas.values()) if (now - last(replica).at > forgottenMs) replicas.delete(replica.key);
  const fresh = [...replicas.values()].filter((replica) => isFresh(replica, now));
  const figures = new Map(fresh.map((replica) => [replica.key, lines.map(({ of }) => of([replica]))]));
  figures.set("", lines.map(({ of }) => of(fresh)));
  samplings = [...samplings, { at: now, figures }].slice(-samplesMax);
  if (selected !== "" && !replicas.has(selected)) selected = "";
}

// MARK: Drawing

function drawPlots() {
  const times = samplings.map(({ at }) => at);
  const spanMs = Math.max(samplesMin, samplings.length) * sampleMs;
  let index = 0;
  for (const plot of plots) {
    const series = plot.lines.map(() => {
      const line = index++;
      return samplings.map(({ figures }) => figures.get(selected)?.[line] ?? null);
    });
    plot.update(series, times, Math.max(spanMs, times[times.length - 1] - times[0]));
  }
}

/** Returns the names of the replicas. Replicas of one machine have one name and are numbered. */
function namesOf(all) {
  const seen = new Map();
  return all.map(({ name }) => {
    seen.set(name, (seen.get(name) ?? 0) + 1);
    return seen.get(name) === 1 ? name : `${name} (${seen.get(name)})`;
  });
}

/** Lists the replicas with a choice of the one to plot. A single replica needs no list. */
function drawReplicas(now) {
  const all = [...replicas.values()].sort((a, b) => a.name.localeCompare(b.name) || a.startedAt - b.startedAt);
  const names = namesOf(all);
  show("card-replicas", all.length > 1);
  const options = [["", "Sum of all replicas"], ...all.map(({ key }, index) => [key, names[index]])];
  list($("replica"), options.map(([value, name]) => ({ key: value, sign: name, make: () => el("option", { value }, name) })));
  $("replica").value = selected;
  list($("replicas"), all.map((replica, index) => {
    const figures = [
      digits(gauge("bellhop_streams_open")(replica)), digits(requests(replica)), digits(delivered(replica)),
      digits(gauge("process_resident_memory_bytes", 1e-6)(replica)), digits(gauge("bellhop_database_queue_depth")(replica)),
    ];
    const state = isFresh(replica, now) ? "" : "no answer";
    return {
      key: replica.key, sign: [names[index], figures, state, last(replica).at],
      make: () => el("tr", {}, el("th", { scope: "row" }, names[index]), el("td", {}, replica.version),
        el("td", {}, replica.startedAt ? when(replica.startedAt) : "–"), figures.map((figure) => el("td", {}, figure)),
        el("td", {}, state || when(last(replica).at))),
    };
  }));
}

const table = (heads, rows) => el("table", {},
  el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows));

/** Returns the replicas that the view shows: the selected one, or all that answer. */
const shownReplicas = (now) => [...replicas.values()].filter((replica) => selected === "" ? isFresh(replica, now) : replica.key === selected);

/** Adds up a counter by its labels over several replicas. */
function totals(some, name) {
  const all = new Map();
  for (const replica of some) {
    for (const [key, count] of named(last(replica).values, name)) all.set(key, (all.get(key) ?? 0) + count);
  }
  return [...all];
}

function drawRefusals(some) {
  const refused = totals(some, "bellhop_http_requests_total").filter(([key]) => isRefusal(key))
    .sort(([, a], [, b]) => b - a).slice(0, 10);
  const failures = totals(some, "bellhop_stream_failures_total").filter(([, count]) => count > 0);
  if (refused.length === 0 && failures.length === 0) {
    return $("refusals").replaceChildren(el("p", { class: "hint" }, "No refusals."));
  }
  const row = (what, status, count) => el("tr", {},
    el("th", { scope: "row" }, el("code", {}, what)), el("td", {}, status), el("td", {}, count.toLocaleString("en")));
  $("refusals").replaceChildren(table(["Request", "Status", "Count"], [
    ...refused.map(([key, count]) =>
      row(`${label(key, "method")} ${label(key, "route")}`, label(key, "status"), count)),
    ...failures.map(([key, count]) => row(`streams: ${label(key, "reason")}`, "", count)),
  ]));
}

function draw() {
  const now = Date.now();
  const some = shownReplicas(now);
  write("operations-note", note(some));
  drawPlots();
  drawReplicas(now);
  drawRefusals(some);
}

/** Requests the metrics once for each known replica. A load balancer spreads the requests over them. */
async function sample() {
  const mine = timer;
  const now = Date.now();
  const count = [...replicas.values()].filter((replica) => isFresh(replica, now)).length;
  try {
    const texts = await Promise.all(Array.from({ length: Math.min(requestsMax, Math.max(1, count)) }, () => fetchText("/metrics")));
    if (!isShown) return;
    for (const text of texts) take(parse(text));
    remember(Date.now());
    problem("operations-problem", "");
    draw();
  } catch (error) {
    const hint = error.status === 404 ? "The setting metricsListen gives them another address." : "The page tries again every 2 seconds.";
    if (isShown) problem("operations-problem", `The metrics cannot be read: ${error.message} ${hint}`);
  } finally {
    if (isShown && mine === timer) timer = setTimeout(sample, sampleMs);
  }
}

function note(some) {
  const sizes = some.map((replica) => last(replica).values.get("bellhop_database_size_bytes") ?? 0);
  const size = Math.max(0, ...sizes);
  const cutOff = some.filter((replica) => last(replica).values.get("bellhop_revocations_trusted") === 0).length;
  const trouble = totals(some, "bellhop_database_trouble").filter(([, value]) => value > 0).map(([key]) => label(key, "reason"));
  const parts = [
    `Figures of ${some.length === 1 ? "one replica" : `${some.length} replicas`}, sampled every 2 seconds.`,
    size ? `Database size: ${digits(size / 1e6)} MB.` : "",
    cutOff ? `${cutOff === 1 ? "One replica is" : `${cutOff} replicas are`} cut off from the others.` : "",
    trouble.length ? `Writes fail: ${[...new Set(trouble)].join(", ")}.` : "",
  ];
  return parts.filter(Boolean).join(" ");
}

export function showOperations(wanted) {
  if (wanted === isShown) return;
  isShown = wanted;
  clearTimeout(timer);
  timer = 0;
  if (wanted) sample();
}

$("replica").addEventListener("change", () => {
  selected = $("replica").value;
  draw();
});

// MARK: Waits

/** Returns minutes with one decimal. Small errors are not rounded to zero; zero has no sign. */
const minutes = (value) => value === null || value === undefined ? "–"
  : value !== 0 && Math.abs(value) < 0.05 ? `${value < 0 ? "−" : ""}${Math.max(1, Math.round(Math.abs(value) * 60))} s`
    : `${value.toFixed(1).replace("-", "−")} min`;
const shareOf = (value) => value === null || value === undefined ? "–" : `${Math.round(value * 100)} %`;

function bar(value, most, kind) {
  if (value === null || value === undefined) return null;
  const shape = { viewBox: "0 0 100 8", preserveAspectRatio: "none", class: `gauge ${kind}`, "aria-hidden": "true" };
  const drawing = svg("svg", shape);
  drawing.append(svg("rect", { x: 0, y: 0, width: 100 * value / most, height: 8 }));
  return drawing;
}

function drawAccuracy(lanes) {
  const known = [["standard", lanes.standard], ["black card", lanes.blackCard], ["all", lanes.overall]]
    .filter(([, lane]) => lane.n > 0);
  if (known.length === 0) {
    return $("accuracy").replaceChildren(el("p", { class: "hint" }, "No customer with an estimate has been served yet."));
  }
  // The scale has at least one minute, so that an error of zero has no bar.
  const most = Math.max(
    1, ...known.flatMap(([, lane]) => [lane.meanAbsoluteError, lane.formula.meanAbsoluteError ?? 0]));
  const off = ({ meanAbsoluteError }, kind) =>
    el("td", {}, bar(meanAbsoluteError, most, kind), minutes(meanAbsoluteError));
  const rows = known.map(([name, lane]) => el("tr", {},
    el("th", { scope: "row" }, name), el("td", {}, lane.n.toLocaleString("en")), off(lane, "own"),
    off(lane.formula, "plain"), el("td", {}, minutes(lane.bias)), el("td", {}, shareOf(lane.shareUnderP90))));
  const heads = ["Lane", "Served customers", "Error of the estimate", "Error of the plain formula", "Bias", "Waits within the 90 % bound"];
  const region = { class: "scroll", tabindex: "0", role: "group", "aria-label": "Accuracy by lane" };
  $("accuracy").replaceChildren(el("div", region, table(heads, rows)));
}

$("accuracy-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const shop = encodeURIComponent($("accuracy-shop").value.trim());
    drawAccuracy(await api("GET", `/v1/shops/${shop}/queue/accuracy`));
  } catch (error) {
    $("accuracy").replaceChildren(el("p", { class: "problem" }, error.message));
  }
});

onSession((_, { shop }) => {
  replicas = new Map();
  samplings = [];
  selected = "";
  $("accuracy-shop").value = shop;
  $("accuracy").replaceChildren();
  return () => showOperations(false);
});

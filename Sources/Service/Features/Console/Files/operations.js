// For who runs it: the service's own figures from /metrics, sampled while somebody looks, as small plots.
import { $, el, problem, write } from "./dom.js";
import { api, fetchText, onSession } from "./session.js";

const sampleMs = 2000;
/** Five minutes; a plot begins with one. */
const samplesMax = 150;
const samplesMin = 30;
/** A percentile of one sample alone would jump about. */
const windowSamples = 5;

/** @type {{at: number, values: Map<string, number>}[]} */
let samples = [];
let timer = 0;
let isShown = false;

// MARK: Reading

/** Prometheus' text: each series by its name and labels, as they stand. */
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

/** What a counter grew by in each second between two samples; null where it began anew. */
function rate(before, after, read) {
  const grown = read(after.values) - read(before.values);
  return grown < 0 ? null : grown / ((after.at - before.at) / 1000);
}

/** A percentile of what was counted between two samples, in the histogram's own steps. */
function percentile(before, after, name, share) {
  const steps = named(after.values, `${name}_bucket`).map(([key, count]) => ({
    end: Number(label(key, "le").replace("+Inf", "Infinity")), count: count - (before.values.get(key) ?? 0),
  })).sort((a, b) => a.end - b.end);
  const all = steps[steps.length - 1]?.count ?? 0;
  if (!(all > 0)) return null;
  const index = steps.findIndex((step) => step.count >= share * all);
  const step = steps[index];
  const start = index === 0 ? 0 : steps[index - 1].end;
  if (step.end === Infinity) return start * 1000;
  const below = index === 0 ? 0 : steps[index - 1].count;
  return 1000 * (start + (step.end - start) * (share * all - below) / Math.max(1, step.count - below));
}

const gauge = (name, scale = 1) => (at) => samples[at].values.has(name) ? samples[at].values.get(name) * scale : null;
const perSecond = (read) => (at) => at === 0 ? null : rate(samples[at - 1], samples[at], read);
const commitTime = "bellhop_database_commit_duration_seconds";
const commit = (share) => (at) => at === 0 ? null
  : percentile(samples[Math.max(0, at - windowSamples)], samples[at], commitTime, share);

const plots = [
  { name: "Streams open", unit: "", lines: [{ of: gauge("bellhop_streams_open") }] },
  {
    name: "Events delivered", unit: "a second",
    lines: [{ of: perSecond((values) => sum(values, "bellhop_stream_events_total")) }],
  },
  {
    name: "Requests answered", unit: "a second",
    lines: [{ of: perSecond((values) => sum(values, "bellhop_http_requests_total")) }],
  },
  { name: "Commit", unit: "ms", lines: [{ name: "median", of: commit(0.5) }, { name: "99 %", of: commit(0.99) }] },
  {
    name: "Refusals", unit: "a second", isBad: true,
    lines: [{ of: perSecond((values) => sum(values, "bellhop_http_requests_total", isRefusal)) }],
  },
  { name: "Writes that wait", unit: "", lines: [{ of: gauge("bellhop_database_queue_depth") }] },
  { name: "Memory", unit: "MB", lines: [{ of: gauge("process_resident_memory_bytes", 1e-6) }] },
  {
    name: "Told to fetch anew", unit: "streams a second", isBad: true,
    lines: [{ of: perSecond((values) => sum(values, "bellhop_stream_resyncs_total")) }],
  },
];

// MARK: Drawing

const svg = (name, attributes) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  return node;
};

const digits = (value) => value === null ? "–" : value >= 100 ? Math.round(value).toLocaleString("en")
  : value >= 10 || Number.isInteger(value) ? String(Math.round(value * 10) / 10) : value.toFixed(value < 1 ? 2 : 1);

/** The next round number above: plots of like heights can be compared. */
function ceiling(value) {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}

const width = 300;
const height = 64;

function draw(plot) {
  const series = plot.lines.map(({ of }) => samples.map((_, index) => of(index)));
  const most = ceiling(Math.max(0, ...series.flat().filter((value) => value !== null)));
  const span = Math.max(samplesMin, samples.length);
  const last = series.map((values) => values[values.length - 1] ?? null);
  const text = plot.lines.map(({ name }, index) => `${name ? `${name} ` : ""}${digits(last[index])}`).join(", ");
  const drawing = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `${plot.name}: ${text} ${plot.unit} now, at most ${digits(most)} in this plot`,
  });
  for (const y of [1, height / 2, height - 1]) {
    drawing.append(svg("line", { class: "grid", x1: 0, x2: width, y1: y, y2: y }));
  }
  series.forEach((values, index) => {
    let path = "";
    let isDown = false;
    values.forEach((value, at) => {
      if (value === null) { isDown = false; return; }
      const x = width - (values.length - 1 - at) * (width / (span - 1));
      const y = height - 1 - (height - 2) * value / most;
      path += `${isDown ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
      isDown = true;
    });
    drawing.append(svg("path", { class: `series s${index}`, d: path }));
  });
  const big = plot.lines.map(({ name }, index) => el("span", { class: `now s${index}` },
    el("b", {}, digits(last[index])), el("small", {}, name ? ` ${name}` : ` ${plot.unit}`)));
  const isAlarm = plot.isBad && (last[0] ?? 0) > 0;
  return el("section", { class: isAlarm ? "card plot bad" : "card plot", "aria-label": plot.name },
    el("h2", {}, plot.name, plot.lines.length > 1 ? el("small", {}, ` ${plot.unit}`) : null),
    el("div", { class: "figures" }, big),
    el("div", { class: "drawing" }, el("span", { class: "most" }, digits(most)), drawing),
    el("div", { class: "axis" },
      el("span", {}, `${Math.round(span * sampleMs / 60_000)} min ago`), el("span", {}, "now")));
}

const table = (heads, rows) => el("table", {},
  el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows));

function drawRefusals(values) {
  const refused = named(values, "bellhop_http_requests_total").filter(([key]) => isRefusal(key))
    .sort(([, a], [, b]) => b - a).slice(0, 10);
  const failures = named(values, "bellhop_stream_failures_total").filter(([, count]) => count > 0);
  if (refused.length === 0 && failures.length === 0) {
    return $("refusals").replaceChildren(el("p", { class: "hint" }, "None."));
  }
  const row = (what, status, count) => el("tr", {},
    el("th", { scope: "row" }, el("code", {}, what)), el("td", {}, status), el("td", {}, count.toLocaleString("en")));
  $("refusals").replaceChildren(table(["Request", "Status", "Times"], [
    ...refused.map(([key, count]) =>
      row(`${label(key, "method")} ${label(key, "route")}`, label(key, "status"), count)),
    ...failures.map(([key, count]) => row(`streams: ${label(key, "reason")}`, "", count)),
  ]));
}

async function sample() {
  const mine = timer;
  try {
    const values = parse(await fetchText("/metrics"));
    if (!isShown) return;
    samples = [...samples, { at: Date.now(), values }].slice(-samplesMax);
    problem("operations-problem", "");
    write("operations-note", note(values));
    $("plots").replaceChildren(...plots.map(draw));
    drawRefusals(values);
  } catch (error) {
    if (isShown) problem("operations-problem", `No figures: ${error.message} They are asked for again.`);
  } finally {
    if (isShown && mine === timer) timer = setTimeout(sample, sampleMs);
  }
}

function note(values) {
  const size = values.get("bellhop_database_size_bytes");
  const trouble = named(values, "bellhop_database_trouble").filter(([, value]) => value > 0)
    .map(([key]) => label(key, "reason"));
  const parts = [
    "Figures of the replica that answered, every two seconds.",
    size ? `Its database has ${digits(size / 1e6)} MB.` : "",
    values.get("bellhop_revocations_trusted") === 0 ? "It is cut off from the others." : "",
    trouble.length ? `Nothing can be stored: ${trouble.join(", ")}.` : "",
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

// MARK: Waits

/** Typeset: a real minus, and none before what rounds to nothing. */
const minutes = (value) => value === null || value === undefined ? "–"
  : `${value.toFixed(1).replace(/^-(?=0\.0$)/, "").replace("-", "−")} min`;
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
    return $("accuracy").replaceChildren(el("p", { class: "hint" }, "Nobody who was told a wait has been served yet."));
  }
  // A minute at least: what is off by nothing has no bar.
  const most = Math.max(
    1, ...known.flatMap(([, lane]) => [lane.meanAbsoluteError, lane.formula.meanAbsoluteError ?? 0]));
  const off = ({ meanAbsoluteError }, kind) =>
    el("td", {}, bar(meanAbsoluteError, most, kind), minutes(meanAbsoluteError));
  const rows = known.map(([name, lane]) => el("tr", {},
    el("th", { scope: "row" }, name), el("td", {}, lane.n.toLocaleString("en")), off(lane, "own"),
    off(lane.formula, "plain"), el("td", {}, minutes(lane.bias)), el("td", {}, shareOf(lane.shareUnderP90))));
  const heads = ["Lane", "Served", "Estimate off by", "Plain formula off by", "Bias", "Within the 90 % promise"];
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
  samples = [];
  $("accuracy-shop").value = shop;
  $("accuracy").replaceChildren();
  return () => showOperations(false);
});

// Line plots with ticks on both axes. Pointing at a plot, or the arrow keys in it, shows the values of one moment.
import { el } from "./dom.js";

const width = 300;
const height = 64;

export const svg = (name, attributes) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  return node;
};

/** Returns a figure with two or three significant digits. */
export const digits = (value) => value === null || value === undefined ? "–"
  : value >= 100 ? Math.round(value).toLocaleString("en")
    : value >= 10 || Number.isInteger(value) ? String(Math.round(value * 10) / 10) : value.toFixed(value < 1 ? 2 : 1);

/** Returns the next round number above a value, so that plots of similar values have the same scale. */
function ceiling(value) {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}

/** Returns the path of a line, which has a gap where a value is missing. */
function pathOf(line, most, xs) {
  let path = "";
  let isDrawing = false;
  line.forEach((value, index) => {
    if (value !== null) {
      const y = height - 1 - (height - 2) * value / most;
      path += `${isDrawing ? "L" : "M"}${xs[index].toFixed(1)} ${y.toFixed(1)}`;
    }
    isDrawing = value !== null;
  });
  return path;
}

/** Draws the grid and the lines of a plot. */
function imageOf({ label, minutes, spanMs, paths }) {
  const image = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label,
  });
  for (const y of [1, height / 2, height - 1]) {
    image.append(svg("line", { class: "grid", x1: 0, x2: width, y1: y, y2: y }));
  }
  for (let minute = 1; minute < minutes; minute += 1) {
    const x = width - minute * 60_000 * width / spanMs;
    image.append(svg("line", { class: "grid", x1: x, x2: x, y1: 0, y2: height }));
  }
  paths.forEach((path, index) => image.append(svg("path", { class: `series s${index}`, d: path })));
  return image;
}

/** Makes the pointer and the arrow keys show the values of one moment.
 * @param {HTMLElement} drawing
 * @param {{xs: () => number[], pointed: () => number, point: (index: number) => void}} plot */
function listenToPointer(drawing, { xs, pointed, point }) {
  drawing.addEventListener("pointermove", (event) => {
    const { left, width: drawn } = drawing.getBoundingClientRect();
    const x = width * (event.clientX - left) / drawn;
    const places = xs();
    let nearest = -1;
    places.forEach((place, index) => {
      if (nearest < 0 || Math.abs(place - x) < Math.abs(places[nearest] - x)) nearest = index;
    });
    point(nearest);
  });
  drawing.addEventListener("pointerleave", () => point(-1));
  drawing.addEventListener("blur", () => point(-1));
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const last = xs().length - 1;
    point(Math.min(last, Math.max(0, (pointed() < 0 ? last + (step > 0 ? 0 : 1) : pointed()) + step)));
  });
}

/** Creates a plot that stays in the page; `update` draws new values into it.
 * @param {{name: string, unit: string, lines: string[], isAlarm?: boolean}} options `isAlarm` marks values above zero
 * @returns {{node: HTMLElement, update: (series: (number | null)[][], times: number[], spanMs: number) => void}} */
export function createPlot({ name, unit, lines, isAlarm = false }) {
  const figures = el("div", { class: "figures" });
  const ticks = ["top", "middle", "bottom"].map((place) => el("span", { class: `tick ${place}` }));
  const cursor = el("div", { class: "cursor", hidden: true });
  const values = el("div", { class: "values", hidden: true });
  const drawing = el("div", {
    class: "drawing", tabindex: "0", role: "group", "aria-label": `${name}: arrow keys show the values of one moment`,
  }, ticks, cursor, values);
  const axis = el("div", { class: "axis", "aria-hidden": "true" });
  const heading = el("h2", {}, name, lines.length > 1 && el("small", {}, ` ${unit}`));
  const node = el("section", { class: "card plot", "aria-label": name }, heading, figures, drawing, axis);
  let shown = { series: lines.map(() => []), times: [], spanMs: 1 };
  /** The index of the sample that the reader points at; -1 without one. */
  let pointed = -1;

  const xOf = (time) => {
    const end = shown.times[shown.times.length - 1];
    return width - (end - time) * width / shown.spanMs;
  };

  function point(index) {
    pointed = index;
    const isShown = index >= 0 && index < shown.times.length;
    cursor.hidden = values.hidden = !isShown;
    if (!isShown) return;
    const share = 100 * xOf(shown.times[index]) / width;
    cursor.style.left = `${share}%`;
    values.classList.toggle("left", share > 50);
    values.style.left = `${share}%`;
    const time = new Date(shown.times[index]).toLocaleTimeString();
    values.replaceChildren(el("b", {}, time), ...lines.map((line, at) =>
      el("span", {}, `${line ? `${line} ` : ""}${digits(shown.series[at][index] ?? null)} ${unit}`)));
  }

  listenToPointer(drawing, { xs: () => shown.times.map(xOf), pointed: () => pointed, point });

  function update(series, times, spanMs) {
    // The samples move to the left; the reader keeps pointing at the same moment.
    const moment = shown.times[pointed];
    shown = { series, times, spanMs };
    const most = ceiling(Math.max(0, ...series.flat().filter((value) => value !== null)));
    const last = series.map((line) => line[line.length - 1] ?? null);
    const text = lines.map((line, index) => `${line ? `${line} ` : ""}${digits(last[index])}`).join(", ");
    const label = `${name}: ${text} ${unit} now, scale up to ${digits(most)}`;
    const minutes = Math.max(1, Math.round(spanMs / 60_000));
    const image = imageOf({ label, minutes, spanMs, paths: series.map((line) => pathOf(line, most, times.map(xOf))) });
    drawing.querySelector("svg")?.remove();
    drawing.prepend(image);
    [most, most / 2, 0].forEach((value, index) => { ticks[index].textContent = digits(value); });
    axis.replaceChildren(...Array.from({ length: minutes + 1 }, (_, index) => minutes - index)
      .map((minute) => el("span", {}, minute === 0 ? "now" : minute === minutes ? `${minute} min ago` : `${minute}`)));
    figures.replaceChildren(...lines.map((line, index) => el("span", { class: `now s${index}` },
      el("b", {}, digits(last[index])), el("small", {}, ` ${line || unit}`))));
    node.classList.toggle("bad", isAlarm && (last[0] ?? 0) > 0);
    point(moment === undefined ? -1 : times.indexOf(moment));
  }

  return { node, update };
}

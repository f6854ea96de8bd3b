// Functions for all parts of the page: elements, relative times, and lists that change in place.

export const $ = (id) => document.getElementById(id);

/** Creates an element. Attributes that are null or false are left out; names that begin with `on` add listeners. */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Creates details whose content is built when they are first opened. */
export function folded(attributes, summary, make) {
  const details = el("details", attributes, summary);
  details.addEventListener("toggle", () => details.append(...make()), { once: true });
  return details;
}

export const counted = (count, thing) => `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;
export const seconds = (ms) => Math.max(0, Math.ceil(ms / 1000));

export function show(id, isShown) {
  const node = typeof id === "string" ? $(id) : id;
  if (node.hidden === isShown) node.hidden = !isShown;
}

/** Sets a text if it differs. A screen reader announces each text that is set. */
export function write(id, text) {
  const node = typeof id === "string" ? $(id) : id;
  if (node.textContent !== text) node.textContent = text;
}

export function problem(id, text) {
  write(id, text);
  show(id, text !== "");
}

// MARK: Times

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
const units = [[minute, 1000, "s"], [hour, minute, "min"], [day, hour, "h"], [7 * day, day, "d"]];

/** Returns a short relative time, such as "3 min ago" or "in 2 h"; a date beyond a week. */
export function relative(at, now = Date.now()) {
  const distance = Math.abs(now - at);
  if (distance < 1500) return "now";
  const unit = units.find(([end]) => distance < end);
  if (!unit) return new Date(at).toLocaleDateString("en", { day: "numeric", month: "short" });
  const text = `${Math.floor(distance / unit[1])} ${unit[2]}`;
  return at <= now ? `${text} ago` : `in ${text}`;
}

/** Creates a relative time that is updated every second. */
export function when(value) {
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return "";
  return el("time", { datetime: at.toISOString(), title: at.toLocaleString() }, relative(at.getTime()));
}

const tickers = new Set();
export const everySecond = (run) => void tickers.add(run);

setInterval(() => {
  const now = Date.now();
  for (const node of document.querySelectorAll("time")) write(node, relative(Date.parse(node.dateTime), now));
  for (const run of tickers) run(now);
}, 1000);

// MARK: Lists

/** Shows a list. Unchanged rows stay in the page, so that they keep the keyboard focus.
 * @param {{key: string, sign: any, make: () => HTMLElement}[]} rows */
export function list(parent, rows) {
  const known = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const place = focused?.closest("[data-key]")?.dataset.key;
  const named = focused?.dataset.name;
  const nodes = rows.map(({ key, sign, make }) => {
    const text = JSON.stringify(sign);
    const old = known.get(key);
    if (old && old.dataset.sign === text) return old;
    const made = make();
    made.dataset.key = key;
    made.dataset.sign = text;
    return made;
  });
  const kept = new Set(nodes);
  for (const node of [...parent.children]) if (!kept.has(node)) node.remove();
  nodes.forEach((node, index) => {
    if (parent.children[index] !== node) parent.insertBefore(node, parent.children[index] ?? null);
  });
  if (!focused || parent.contains(document.activeElement)) return;
  // The focused element was removed or replaced. The focus moves to the same button, the first row, or the page.
  const row = nodes.find((node) => node.dataset.key === place) ?? nodes[0];
  const target = row?.querySelector(`[data-name="${named}"]`) ?? row?.querySelector("button, a, summary") ?? $("main");
  target.focus();
}

export async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copy failed";
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

/** Returns the members of a value as text, without quotes and braces. */
export const inline = (value) => Object.entries(value ?? {}).map(([name, member]) =>
  `${name} ${member !== null && typeof member === "object" ? JSON.stringify(member) : member}`).join(", ");

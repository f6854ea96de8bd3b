// Renders the Markdown of the API description: paragraphs, headings, lists, tables, code blocks and inline marks. Texts
// become text nodes, so they cannot add elements of their own.
import { el } from "./dom.js";

const inlineMarks = /(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*|\[[^\]]+\]\([^)\s]+\))/;
const isSafe = (address) => /^(https?:|#|\.?\/|[\w-]+(\.[\w-]+)*$)/.test(address);

/** Returns the nodes of a text without paragraphs: code, emphasis and links. */
export function inlineMarkdown(text) {
  return text.split(inlineMarks).filter((part) => part !== "").map((part) => {
    if (/^`.+`$/s.test(part)) return el("code", {}, part.slice(1, -1));
    if (/^\*\*.+\*\*$/s.test(part)) return el("strong", {}, inlineMarkdown(part.slice(2, -2)));
    if (/^\*.+\*$/s.test(part)) return el("em", {}, inlineMarkdown(part.slice(1, -1)));
    const [, label, address] = part.match(/^\[([^\]]+)\]\(([^)\s]+)\)$/) ?? [];
    return label === undefined ? part : isSafe(address) ? el("a", { href: address }, label) : label;
  });
}

/** Returns an element with the blocks of a text.
 * @param {number} level the level of the text's `##` headings */
export function markdown(text, level = 2) {
  return el("div", { class: "prose" }, blocks((text ?? "").replaceAll("\r", "").split("\n"), level));
}

const fence = /^\s*```/;
const heading = /^(#{1,6})\s+(.*)$/;
const bullet = /^(\s*)(?:[-*+]|(\d+)[.)])\s+(.*)$/;
const isRow = (line) => /^\s*\|/.test(line);
const isDivider = (line) => /^\s*\|?(\s*:?-+:?\s*\|)+\s*:?-*:?\s*$/.test(line ?? "");

function blocks(lines, level) {
  const nodes = [];
  let at = 0;
  /** Takes lines while a condition holds. */
  const take = (holds) => {
    const from = at;
    while (at < lines.length && holds(lines[at])) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    if (line.trim() === "") {
      at += 1;
    } else if (fence.test(line)) {
      at += 1;
      nodes.push(el("pre", { tabindex: "0" }, take((next) => !fence.test(next)).join("\n")));
      at += 1;
    } else if (heading.test(line)) {
      const [, marks, title] = line.match(heading);
      nodes.push(el(`h${Math.min(6, Math.max(1, level + marks.length - 2))}`, {}, inlineMarkdown(title)));
      at += 1;
    } else if (isRow(line) && isDivider(lines[at + 1])) {
      nodes.push(table(take(isRow)));
    } else if (bullet.test(line)) {
      // An item goes on while its lines are indented; the next item follows without an empty line.
      nodes.push(listOf(take((next) => bullet.test(next) || /^\s+\S/.test(next)), level));
    } else {
      const text = [lines[at]];
      at += 1;
      text.push(...take((next) => next.trim() !== "" && !fence.test(next) && !heading.test(next) && !bullet.test(next) && !isRow(next)));
      nodes.push(el("p", {}, inlineMarkdown(text.join(" "))));
    }
  }
  return nodes;
}

function listOf(lines, level) {
  const [, indent, number] = lines[0].match(bullet);
  const items = [];
  for (const line of lines) {
    const found = line.match(bullet);
    if (found && found[1].length <= indent.length) items.push([found[3]]);
    else items[items.length - 1].push(line.slice(Math.min(indent.length + 2, line.search(/\S/))));
  }
  return el(number ? "ol" : "ul", { class: "points" }, items.map((item) => {
    const children = blocks(item, level);
    return el("li", {}, children.length === 1 && children[0].tagName === "P" ? [...children[0].childNodes] : children);
  }));
}

/** Splits a row at its pipes; `\|` and pipes in code belong to the cell. */
function cells(line) {
  const found = [""];
  for (const [part] of line.trim().replace(/^\||\|$/g, "").matchAll(/`[^`]*`|\\\||\||[^|`\\]+|./g)) {
    if (part === "|") found.push("");
    else found[found.length - 1] += part === "\\|" ? "|" : part;
  }
  return found.map((cell) => cell.trim());
}

function table([head, , ...rows]) {
  const names = cells(head);
  const row = (line) => el("tr", {}, cells(line).map((cell) => el("td", {}, inlineMarkdown(cell))));
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `Table: ${names.join(", ")}` },
    el("table", {}, el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col" }, inlineMarkdown(name))))),
      el("tbody", {}, rows.map(row))));
}

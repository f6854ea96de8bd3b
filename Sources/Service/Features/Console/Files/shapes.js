// The words of a schema, for people.
import { el } from "./dom.js";

let api = {};
export const setDocument = (document) => void (api = document);

/** What a reference means; anything else is itself. */
export function resolved(value) {
  const path = value?.$ref?.replace(/^#\//, "").split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  return path ? resolved(path.reduce((place, part) => place?.[part], api) ?? {}) : value;
}

const nameOf = (schema) => schema?.$ref?.match(/^#\/components\/schemas\/(.+)$/)?.[1];

/** `code` and *stress* of a text without paragraphs. */
export function phrase(text) {
  return text.split(/(`[^`]+`|\*[^*\s][^*]*\*)/).map((part) => {
    if (/^`.*`$/s.test(part)) return el("code", {}, part.slice(1, -1));
    return /^\*.*\*$/s.test(part) ? el("em", {}, part.slice(1, -1)) : part;
  });
}

/** Paragraphs and `##` headings, the Markdown that the description uses. */
export function say(text) {
  const prose = el("div", { class: "prose" });
  for (const block of (text ?? "").trim().split(/\n\s*\n/)) {
    if (block === "") continue;
    prose.append(block.startsWith("## ") ? el("h2", {}, block.slice(3)) : el("p", {}, phrase(block)));
  }
  return prose;
}

/** One line: a type with its bounds. */
export function kind(schema) {
  if (schema === undefined || schema === true || Object.keys(schema).length === 0) return "anything";
  const name = nameOf(schema);
  if (name) return name;
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return choices.map(kind).join(" | ");
  if (schema.allOf) return schema.allOf.map(kind).join(" & ");
  const types = [schema.type ?? "anything"].flat();
  const words = types.map((type) => (type === "array" ? `array of ${kind(schema.items)}` : type));
  return [words.join(" | "), schema.format, ...bounds(schema)].filter(Boolean).join(", ");
}

function bounds(schema) {
  const range = (least, most, unit) => {
    if (least === undefined && most === undefined) return null;
    if (most === undefined) return `at least ${least}${unit}`;
    return least === undefined ? `at most ${most}${unit}` : least === most ? `${least}${unit}` : `${least}…${most}${unit}`;
  };
  return [
    range(schema.minimum, schema.maximum, ""), range(schema.minLength, schema.maxLength, " characters"),
    range(schema.minItems, schema.maxItems, " items"), schema.pattern ? `like ${schema.pattern}` : null,
    "default" in schema ? `${JSON.stringify(schema.default)} if left out` : null,
  ];
}

/** The members of a schema, those of inner objects folded behind their names. */
export function fields(schema, depth = 0) {
  const name = nameOf(schema);
  if (name && depth > 0) return el("a", { href: `#shape-${name}` }, name);
  const whole = resolved(schema) ?? {};
  const parts = [];
  if (whole.description && depth === 0) parts.push(say(whole.description));
  const members = membersOf(whole);
  if (members.length > 0) parts.push(el("ul", { class: "fields" }, members.map((member) => field(member, depth))));
  else parts.push(el("p", { class: "hint" }, kind(whole)));
  for (const choice of whole.oneOf ?? whole.anyOf ?? []) {
    const known = nameOf(choice);
    if (known) parts.push(el("p", {}, "or ", el("a", { href: `#shape-${known}` }, known)));
  }
  return el("div", {}, parts);
}

/** With those of the schemas that it is made of. */
function membersOf(schema) {
  const needed = new Set(schema.required ?? []);
  const own = Object.entries(schema.properties ?? {}).map(([name, value]) => ({ name, value, isNeeded: needed.has(name) }));
  return [...(schema.allOf ?? []).flatMap((part) => membersOf(resolved(part))), ...own];
}

function field({ name, value, isNeeded }, depth) {
  const reference = nameOf(value) ?? nameOf(value.items);
  const type = el("span", { class: "kind" }, reference ? el("a", { href: `#shape-${reference}` }, kind(value)) : kind(value));
  const inner = reference ? null : value.properties ? value : value.items?.properties ? value.items : null;
  return el("li", {}, el("code", {}, name), type, isNeeded ? el("span", { class: "needed" }, "needed") : null,
    value.description ? say(value.description) : null, inner && depth < 4 ? fields({ ...inner, description: undefined }, depth + 1) : null);
}

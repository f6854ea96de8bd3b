// Renders JSON Schemas of the API description as trees. References are resolved, and the parts of `allOf` are merged.
import { el, folded } from "./dom.js";
import { markdown } from "./markdown.js";

let api = {};
export const setDocument = (document) => void (api = document);

/** Returns the target of a reference; any other value is returned unchanged. */
export function resolved(value) {
  const path = value?.$ref?.replace(/^#\//, "").split("/").map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"));
  return path ? resolved(path.reduce((place, part) => place?.[part], api) ?? {}) : value;
}

/** Returns a way to authenticate by its name. */
export const securityScheme = (name) => api.components?.securitySchemes?.[name] ?? {};

const nameOf = (schema) => schema?.$ref?.match(/^#\/components\/schemas\/(.+)$/)?.[1];

/** Returns the example of a media type. */
export const exampleOf = (media) => media?.example ?? Object.values(media?.examples ?? {})[0]?.value;

/** Resolves a schema and merges the parts of its `allOf`. */
function flattened(schema) {
  const { allOf, ...own } = resolved(schema) ?? {};
  return [...(allOf ?? []).map(flattened), own].reduce((whole, part) => ({
    ...whole, ...part,
    properties: whole.properties || part.properties ? { ...whole.properties, ...part.properties } : undefined,
    required: [...(whole.required ?? []), ...(part.required ?? [])],
  }), {});
}

const isNull = (schema) => schema?.type === "null";
const alternativesOf = (schema) => schema.oneOf ?? schema.anyOf ?? [];
/** True for an alternative that only names required members. */
const isRequirement = (schema) => Object.keys(schema).every((key) => key === "required");

/** Returns the schema without null, and whether null is allowed: `oneOf: [X, null]` is X. */
function essence(schema) {
  const whole = schema?.$ref ? schema : schema ?? {};
  const others = alternativesOf(whole).filter((part) => !isNull(part));
  const isWrapper = others.length === 1 && !whole.properties;
  return { schema: isWrapper ? others[0] : whole, isNullable: alternativesOf(whole).some(isNull) };
}

// MARK: One line

/** Returns the nodes that describe a type, with links to named schemas. */
function typeOf(given) {
  const { schema, isNullable } = essence(given);
  const nodes = plainType(schema);
  return isNullable ? [...nodes, " or null"] : nodes;
}

const joined = (lists, word) => lists.flatMap((nodes, index) => (index === 0 ? nodes : [word, ...nodes]));

function plainType(schema) {
  if (schema === true || Object.keys(schema).length === 0) return ["any JSON value"];
  const name = nameOf(schema);
  if (name) return [el("a", { href: `#schema-${name}` }, name)];
  if (schema.$ref) return plainType(resolved(schema));
  if ("const" in schema) return [el("code", {}, JSON.stringify(schema.const))];
  const alternatives = alternativesOf(schema).filter((part) => !isRequirement(part));
  if (alternatives.length > 0 && !schema.properties) return joined(alternatives.map(typeOf), " or ");
  if (schema.allOf) return schema.allOf.length === 1 ? typeOf(schema.allOf[0]) : ["object"];
  const types = [schema.type ?? (schema.properties ? "object" : schema.enum ? "string" : schema.description ? "any JSON value" : "any")].flat();
  return joined(types.map((type) => (type === "array" ? ["array of ", ...typeOf(schema.items ?? true)] : [type])), " or ");
}

function range(least, most, unit) {
  if (least === undefined && most === undefined) return null;
  const text = (value) => (typeof value === "number" ? value.toLocaleString("en") : value);
  if (most === undefined) return `at least ${text(least)}${unit}`;
  if (least === undefined) return `at most ${text(most)}${unit}`;
  return least === most ? `exactly ${text(least)}${unit}` : `${text(least)} to ${text(most)}${unit}`;
}

/** Returns the limits of a value as one line. */
function limits(given) {
  const schema = flattened(essence(given).schema);
  const parts = [
    schema.format && [schema.format],
    range(schema.minimum ?? schema.exclusiveMinimum, schema.maximum ?? schema.exclusiveMaximum, ""),
    range(schema.minLength, schema.maxLength, " characters"), range(schema.minItems, schema.maxItems, " items"),
    range(schema.minProperties, schema.maxProperties, " members"),
    schema.uniqueItems && "no duplicates",
    schema.enum && ["one of ", ...joined(schema.enum.map((value) => [el("code", {}, JSON.stringify(value))]), ", ")],
    schema.pattern && ["pattern ", el("code", {}, schema.pattern)],
    "default" in schema && ["default ", el("code", {}, JSON.stringify(schema.default))],
    schema.contentMediaType && `contains ${schema.contentMediaType}`,
  ].filter(Boolean).map((part) => [part].flat());
  return parts.length > 0 ? el("div", { class: "limits" }, joined(parts, ", ")) : null;
}

// MARK: Trees

/** Returns true if a schema has members, alternatives or items to show below its own line. */
function hasInner(given) {
  const schema = flattened(essence(given).schema);
  if (schema.type === "array" || schema.items) return hasInner(schema.items ?? {});
  return Object.keys(schema.properties ?? {}).length > 0 || hasOthers(schema) ||
    alternativesOf(schema).some((part) => !isNull(part) && !isRequirement(part) && hasInner(part));
}

const hasOthers = ({ additionalProperties }) => additionalProperties && typeof additionalProperties === "object";

/** Renders a schema: its type, limits and description, then its members.
 * @param {string[]} path the named schemas above this one, which ends recursion */
export function schemaTree(given, path = [], isTop = true) {
  const { schema } = essence(given);
  const whole = flattened(schema);
  const name = nameOf(schema);
  const inner = [...path, name ?? ""];
  const parts = [];
  if (isTop) {
    parts.push(el("p", { class: "type" }, typeOf(given)), limits(given));
    if (whole.description) parts.push(markdown(whole.description, 4));
  }
  if (whole.items) {
    if (hasInner(whole.items)) parts.push(schemaTree(whole.items, path, false));
    return el("div", { class: "schema" }, parts);
  }
  const required = new Set(whole.required);
  const members = Object.entries(whole.properties ?? {});
  const rows = members.map(([member, value]) => memberOf(member, value, required.has(member), inner));
  if (hasOthers(whole)) rows.push(memberOf("*", whole.additionalProperties, false, inner));
  if (rows.length > 0) parts.push(el("ul", { class: "fields" }, rows));
  parts.push(rules(whole), alternatives(whole, inner));
  return el("div", { class: "schema" }, parts);
}

/** Renders rules about combinations of members. */
function rules(schema) {
  const names = (list) => list.map((name) => [el("code", {}, name)]);
  const needed = alternativesOf(schema).filter((part) => part.required && isRequirement(part));
  const lines = [
    needed.length > 0 && ["Requires ", ...joined(needed.map(({ required }) => joined(names(required), " and ")), " or "), "."],
    schema.not?.required && [...joined(names(schema.not.required), " and "), " cannot be combined."],
    schema.properties && schema.additionalProperties === false && ["Other members are rejected."],
  ].filter(Boolean);
  return lines.map((line) => el("p", { class: "hint" }, line));
}

function alternatives(schema, path) {
  const parts = alternativesOf(schema).filter((part) => !isNull(part) && !isRequirement(part));
  if (parts.length < 2 || !parts.some(hasInner)) return null;
  // An alternative of a schema that is shown already, such as a list of it, shows only its type.
  const shown = new Set(path.filter((name) => name !== ""));
  return el("ol", { class: "alternatives" }, parts.map((part, index) => {
    const name = nameOf(part) ?? nameOf(part.items);
    const isKnown = shown.has(name);
    if (name) shown.add(name);
    return el("li", {}, el("p", { class: "type" }, el("b", {}, `Alternative ${index + 1}: `), typeOf(part)), limits(part),
      hasInner(part) && !isKnown && schemaTree(part, path, false));
  }));
}

function memberOf(name, value, isRequired, path) {
  const { schema } = essence(value);
  const target = flattened(schema);
  const described = value.description ?? schema.description ?? (nameOf(schema) && !hasInner(schema) ? target.description : undefined);
  return el("li", {},
    el("code", { class: "name" }, name === "*" ? "(any other name)" : name),
    el("span", { class: "kind" }, typeOf(value)),
    isRequired && el("span", { class: "needed" }, "required"),
    limits(value),
    described && markdown(described, 4),
    hasInner(value) && members(value, path));
}

/** Renders the members of a member. The first level is open; deeper levels are built when they are opened. */
function members(value, path) {
  const { schema } = essence(value);
  const isList = Boolean(flattened(schema).items);
  const item = isList ? essence(flattened(schema).items).schema : schema;
  const name = nameOf(item);
  const summary = el("summary", {}, `Members${name ? ` of ${name}` : isList ? " of each item" : ""}`);
  const make = () => [schemaTree(item, path, false)];
  if (path.length > 1 || (name && path.includes(name))) return folded({ class: "inner" }, summary, make);
  return el("details", { class: "inner", open: true }, summary, make());
}

/** Renders a parameter or a header. */
export function parameterRow({ name, in: place, required, description, schema = {}, example }) {
  return el("li", {},
    el("code", { class: "name" }, name), el("span", { class: "kind" }, place ? `${place}, ` : "", typeOf(schema)),
    required && el("span", { class: "needed" }, "required"),
    limits(schema),
    description && markdown(description, 4),
    example !== undefined && el("p", { class: "hint" }, "Example: ", el("code", {}, String(example))));
}


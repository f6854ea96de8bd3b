// The page at /docs: it draws the description that the service gives of itself, and lets each request be tried.
import { $, el, folded, problem, write } from "./dom.js";
import { fields, kind, phrase, resolved, say, setDocument } from "./shapes.js";
import { attempt, followToken } from "./try.js";

const methods = ["get", "put", "post", "patch", "delete"];
const pretty = (value) => JSON.stringify(value, null, 2);

/** All that can be found, each with its text in small letters. */
const findable = [];

async function start() {
  let api;
  try {
    const answer = await fetch("openapi.json");
    if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
    api = await answer.json();
  } catch (error) {
    problem("problem", `The description cannot be read: ${error.message}. Load the page again.`);
    return;
  }
  setDocument(api);
  write("version", `version ${api.info.version}`);
  $("description").append(say(api.info.summary), say(api.info.description));
  followToken();
  const groups = api.tags.map((tag) => ({ ...tag, operations: operationsOf(api, tag.name) })).filter((group) => group.operations.length > 0);
  for (const group of groups) {
    const title = group.name[0].toUpperCase() + group.name.slice(1);
    place(`group-${group.name}`, title, say(group.description), group.operations.map(operation));
  }
  place("group-events", "Events of streams", say("What comes on a stream, by its name, with its data."), events(api));
  place("group-webhooks", "Webhooks", say("What the service sends to an address of yours."), webhooks(api));
  const shapes = Object.keys(api.components.schemas).sort();
  place("group-shapes", "Shapes", say("What requests and answers are made of."), shapes.map((name) => shape(api, name)));
  $("find").addEventListener("input", find);
  document.addEventListener("keydown", hurry);
  watchPlace();
  // The browser looked for the place before it was there.
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

function operationsOf(api, tag) {
  const found = [];
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of methods) {
      if (!item[method]?.tags?.includes(tag)) continue;
      const parameters = [...(item.parameters ?? []), ...(item[method].parameters ?? [])].map(resolved);
      found.push({ ...item[method], path, method: method.toUpperCase(), parameters, security: item[method].security ?? api.security });
    }
  }
  return found;
}

// MARK: Places

/** A group with its title, in the page and in the contents. */
function place(id, title, lead, items) {
  const links = el("ul", {});
  const heading = el("h2", {}, el("a", { href: `#${id}` }, title));
  $("contents").append(el("div", {}, heading, links));
  const section = el("section", { class: "group prose", id, "aria-label": title }, el("h2", {}, title), lead);
  for (const { node, name, text } of items) {
    const link = el("li", {}, el("a", { href: `#${node.id}` }, name));
    links.append(link);
    section.append(node);
    findable.push({ node, link, section, links: links.parentElement, text: text.toLowerCase() });
  }
  $("operations").append(section);
}

function operation(described) {
  const { operationId, method, path, summary, description, parameters, requestBody, responses } = described;
  const body = requestBody && resolved(requestBody);
  const content = body ? Object.entries(body.content) : [];
  const node = el(
    "article", { class: "operation", id: operationId },
    el("header", {}, el("h3", {}, phrase(summary)), el("p", { class: "address" }, el("span", { class: `method ${method}` }, method), el("code", {}, path), who(described))),
    description ? say(description) : null,
    el("div", { class: "sides" },
      el("div", {},
        parameters.length > 0 ? [el("h4", {}, "Parameters"), el("ul", { class: "fields" }, parameters.map(parameter))] : null,
        content.length > 0 ? [el("h4", {}, "Body"), content.map(([type, media]) => media.schema && (content.length === 1 || type === "application/json") ? fields(media.schema) : el("p", { class: "hint" }, type))] : null,
        el("h4", {}, "Answers"), el("ul", { class: "answers" }, Object.entries(responses).map(([status, response]) => answer(status, resolved(response))))),
      el("div", {}, examples(content, responses), attempt(described))));
  return { node, name: summary.replace(/\.$/, "").replaceAll("`", ""), text: `${method} ${path} ${operationId} ${summary} ${description ?? ""} ${pretty([parameters, requestBody, Object.keys(responses)])}` };
}

/** Whose token it takes. */
function who({ security }) {
  const names = security.map((entry) => Object.keys(entry)[0]);
  const text = names.length === 0 ? "for anybody" : names.includes("bearer") ? "" : `by ${names.join(" or ")}`;
  return text ? el("small", {}, text) : null;
}

function parameter(described) {
  const { name, required, description, schema } = described;
  return el("li", {}, el("code", {}, name), el("span", { class: "kind" }, `${described.in}, ${kind(schema)}`), required ? el("span", { class: "needed" }, "needed") : null, description ? say(description) : null);
}

function answer(status, response) {
  const media = Object.values(response.content ?? {}).find((media) => media.schema);
  const code = el("b", { class: status < 400 ? "good" : "bad" }, status);
  const headers = Object.entries(response.headers ?? {});
  if (!media && headers.length === 0) return el("li", {}, code, phrase(response.description));
  return el("li", {}, folded({}, el("summary", {}, code, phrase(response.description)), () => [
    headers.length > 0 ? el("ul", { class: "fields" }, headers.map(([name, header]) => parameter({ in: "header", schema: {}, ...resolved(header), name }))) : "",
    media ? fields(media.schema) : "",
  ]));
}

function examples(content, responses) {
  const parts = [];
  const [, media] = content.find(([, media]) => exampleOf(media) !== undefined) ?? [];
  if (media) parts.push(el("h4", {}, "For example"), el("pre", {}, shown(exampleOf(media))));
  for (const [status, response] of Object.entries(responses)) {
    const [given] = Object.values(resolved(response).content ?? {}).map(exampleOf).filter((value) => value !== undefined);
    if (status >= 300 || given === undefined) continue;
    parts.push(el("h4", {}, `Answer ${status}`), el("pre", { tabindex: "0" }, shown(given)));
  }
  return parts;
}

export const exampleOf = (media) => media.example ?? Object.values(media.examples ?? {})[0]?.value;
const shown = (value) => (typeof value === "string" ? value : pretty(value));

function events(api) {
  return Object.entries(api.paths["/v1/stream"].get["x-events"]).map(([name, schema]) => ({
    node: el("article", { class: "shape event", id: `event-${name}` }, el("h3", {}, name), fields(schema)),
    name, text: `${name} ${pretty(schema)}`,
  }));
}

function webhooks(api) {
  return Object.entries(api.webhooks ?? {}).map(([name, item]) => {
    const entry = operation({ ...item.post, operationId: `webhook-${name}`, method: "POST", path: "webhookURL", parameters: item.post.parameters ?? [], security: [{ webhookSignature: [] }], isTheirs: true });
    return { ...entry, name };
  });
}

function shape(api, name) {
  const schema = api.components.schemas[name];
  return { node: el("article", { class: "shape", id: `shape-${name}` }, el("h3", {}, name), fields(schema)), name, text: `${name} ${pretty(schema)}` };
}

// MARK: Finding

function find() {
  const words = $("find").value.toLowerCase().split(/\s+/).filter((word) => word !== "");
  let count = 0;
  for (const entry of findable) {
    const isFound = words.every((word) => entry.text.includes(word));
    entry.node.hidden = entry.link.hidden = !isFound;
    if (isFound) count += 1;
  }
  for (const { section, links } of findable) {
    const isEmpty = !section.querySelector("article:not([hidden])");
    section.hidden = links.hidden = isEmpty;
  }
  $("about").hidden = words.length > 0;
  write("found", words.length === 0 ? "" : count === 0 ? "Nothing has all these words." : `${count} found`);
}

/** `/` begins to find, Escape ends it. */
function hurry(event) {
  const isTyping = event.target.closest("input, textarea");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    $("find").focus();
  } else if (event.key === "Escape" && event.target === $("find")) {
    $("find").value = "";
    find();
  }
}

/** The contents show where one reads. */
function watchPlace() {
  let current = null;
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      current?.removeAttribute("aria-current");
      current = findable.find(({ node }) => node === target).link.firstChild;
      current.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-72px 0px -80% 0px" });
  for (const { node } of findable) watcher.observe(node);
}

start();

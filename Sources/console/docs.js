// The page at /docs. It reads the service's own API description and shows one operation, event, webhook or schema at a
// time. The fragment of the address names it: #getBadges, #event-badges:update, #schema-Badges.
import { $, copy, el, folded, problem, write } from "./dom.js";
import { inlineMarkdown, markdown } from "./markdown.js";
import { exampleOf, parameterRow, resolved, schemaTree, setDocument } from "./shapes.js";
import { attempt, serviceURL } from "./try.js";

const methods = ["get", "put", "post", "patch", "delete"];
/** The address in the examples of the description. */
const exampleURL = "http://127.0.0.1:8080";
const languages = { Shell: "curl" };

/** A page about one thing.
 * @typedef {{id: string, title: string, label: () => any[], lead?: string, text: string, make: () => Node, group: Group,
 *   link: HTMLElement, entry: HTMLElement}} Topic
 * @typedef {{id: string, title: string, lead: string, topics: Topic[], node: HTMLDetailsElement}} Group */

let api = {};
/** @type {Group[]} */
let groups = [];
/** @type {Map<string, Topic | Group>} */
const places = new Map();

async function start() {
  try {
    const answer = await fetch("openapi.json");
    if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
    api = await answer.json();
  } catch (error) {
    problem("problem", `The API description cannot be read: ${error.message}. Reload the page.`);
    return;
  }
  setDocument(api);
  write("version", `version ${api.info.version}`);
  const capitalized = (name) => name.length < 3 ? name.toUpperCase() : name[0].toUpperCase() + name.slice(1);
  groups = [
    ...api.tags.map(({ name, description }) => groupOf(`group-${name}`, capitalized(name), description, operationsOf(name).map(operation))),
    groupOf("group-events", "Stream events", "Events that the service sends on a stream, with the schema of their data.", events()),
    groupOf("group-webhooks", "Webhooks", "Requests that the service sends to your address.", webhooks()),
    groupOf("group-schemas", "Schemas", "Named parts of requests, answers and events.", schemas()),
  ].filter(({ topics }) => topics.length > 0);
  $("contents").append(...groups.map(contentsOf));
  $("find").addEventListener("input", find);
  $("contents-toggle").addEventListener("click", () => openContents($("contents-toggle").getAttribute("aria-expanded") !== "true"));
  document.addEventListener("keydown", shortcut);
  addEventListener("hashchange", () => go(true));
  // The fragment names a place, so the link to the content cannot use it.
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("main").focus();
  });
  go(false);
}

function groupOf(id, title, lead, topics) {
  const group = { id, title, lead, topics };
  for (const topic of [group, ...topics]) places.set(topic.id, topic);
  for (const topic of topics) topic.group = group;
  return group;
}

// MARK: Navigation

/** Shows the place that the fragment names. */
function go(isMove) {
  const id = decodeURIComponent(location.hash.slice(1));
  const place = places.get(id);
  // The overview is the start, and stands in for an unknown place.
  const title = place?.title ?? "API reference";
  document.title = `${title} · Bellhop API`;
  const view = !place ? overview(id) : place.topics ? groupPage(place) : topicPage(place);
  $("view").replaceChildren(view);
  mark(place);
  if (!isMove) return;
  openContents(false);
  scrollTo(0, 0);
  $("view").querySelector("h1").focus({ preventScroll: true });
}

/** Marks the current place in the contents and opens its group. */
function mark(place) {
  for (const link of document.querySelectorAll("#contents [aria-current]")) link.removeAttribute("aria-current");
  if (!place) return;
  const group = place.group ?? place;
  group.node.open = true;
  place.link?.setAttribute("aria-current", "page");
  place.link?.scrollIntoView({ block: "nearest" });
}

/** Shows the contents on a narrow window; a wide one always shows them. */
function openContents(isOpen) {
  $("contents-toggle").setAttribute("aria-expanded", String(isOpen));
  $("contents").classList.toggle("open", isOpen);
}

const heading = (title) => el("h1", { tabindex: "-1" }, title);

function overview(id) {
  return el("article", { class: "overview" },
    heading("API reference"),
    id !== "" && el("p", { class: "problem" }, `The reference has no entry “${id}”.`),
    el("p", { class: "lead" }, api.info.summary ?? ""),
    el("p", {}, "The same description for tools: ", el("a", { href: "openapi.yaml" }, "openapi.yaml"), ", ", el("a", { href: "openapi.json" }, "openapi.json"), ". Its events: ", el("a", { href: "asyncapi.json" }, "asyncapi.json"), "."),
    el("ul", { class: "groups" }, groups.map(({ id, title, lead, topics }) => el("li", {},
      el("a", { href: `#${id}` }, title), el("small", {}, ` ${topics.length}`), el("p", {}, inlineMarkdown(lead ?? ""))))),
    markdown(api.info.description));
}

function groupPage({ title, lead, topics }) {
  return el("article", {}, heading(title), markdown(lead, 3),
    el("ul", { class: "index" }, topics.map((topic) => el("li", {},
      el("a", { href: `#${topic.id}` }, topic.label()), topic.lead && el("p", {}, inlineMarkdown(topic.lead))))));
}

function topicPage(topic) {
  const { topics } = topic.group;
  const at = topics.indexOf(topic);
  const [previous, next] = [topics[at - 1], topics[at + 1]];
  return el("div", {},
    el("p", { class: "trail" }, el("a", { href: "#" }, "API reference"), " / ", el("a", { href: `#${topic.group.id}` }, topic.group.title)),
    topic.make(),
    el("nav", { class: "beside", "aria-label": "Neighbors" },
      previous && el("a", { href: `#${previous.id}`, rel: "prev" }, `← ${previous.title}`), el("span", {}),
      next && el("a", { href: `#${next.id}`, rel: "next" }, `${next.title} →`)));
}

function contentsOf(group) {
  group.node = el("details", {},
    el("summary", {}, group.title, el("small", {}, String(group.topics.length))),
    el("ul", {}, group.topics.map((topic) => {
      topic.link = el("a", { href: `#${topic.id}` }, topic.label());
      topic.entry = el("li", {}, topic.link);
      return topic.entry;
    })));
  return group.node;
}

// MARK: Operations

function operationsOf(tag) {
  const found = [];
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of methods) {
      if (item[method]?.tags?.[0] !== tag) continue;
      const parameters = [...(item.parameters ?? []), ...(item[method].parameters ?? [])].map(resolved);
      found.push({ ...item[method], path, method: method.toUpperCase(), parameters, security: item[method].security ?? api.security ?? [] });
    }
  }
  return found;
}

const methodTag = (method) => el("span", { class: `method ${method}` }, method);

/** @returns {Topic} */
function operation(described) {
  const { operationId, method, path, summary, description } = described;
  return {
    id: operationId, title: summary,
    label: () => [el("span", { class: "title" }, inlineMarkdown(summary)), el("span", { class: "address" }, methodTag(method), " ", el("code", {}, path))],
    text: `${method} ${path} ${operationId} ${summary} ${description ?? ""} ${JSON.stringify([described.parameters, described.requestBody, described.responses])}`.toLowerCase(),
    make: () => operationPage(described),
  };
}

function operationPage(described) {
  const { operationId, method, path, summary, description, parameters, requestBody, responses } = described;
  const body = requestBody && resolved(requestBody);
  const content = Object.entries(body?.content ?? {});
  return el("article", { class: "operation", id: operationId },
    heading(inlineMarkdown(summary)),
    el("p", { class: "address" }, methodTag(method), el("code", {}, path)),
    el("p", { class: "hint access" }, access(described)),
    description && markdown(description, 3),
    el("div", { class: "sides" },
      el("div", { class: "reference" },
        ["path", "query", "header", "cookie"].map((place) => parametersIn(place, parameters)),
        content.length > 0 && el("section", { class: "body" }, el("h2", {}, "Request body", !body.required && el("small", {}, " optional")), mediaTypes(content)),
        el("section", {}, el("h2", {}, "Responses"), responseList(responses)),
        described["x-events"] && el("section", {}, el("h2", {}, "Events"), eventLinks(described["x-events"]))),
      el("div", { class: "samples" }, samples(described), exampleBlock("Request body", content), responseExample(responses), attempt(described))));
}

/** Returns how callers of an operation authenticate. */
function access({ security, isWebhook }) {
  const names = security.map((entry) => Object.keys(entry)[0]).filter(Boolean);
  if (names.length === 0) return isWebhook ? ["Signed by the service"] : ["No token required"];
  const schemes = names.map((name) => api.components.securitySchemes[name]);
  return schemes.flatMap((scheme, index) => [
    index === 0 ? "Authentication: " : " or ",
    ...(scheme.type === "http" ? ["bearer token"] : [`${scheme.in === "query" ? "query parameter" : scheme.in} `, el("code", {}, scheme.name)]),
  ]);
}

function parametersIn(place, parameters) {
  const found = parameters.filter((parameter) => parameter.in === place);
  if (found.length === 0) return null;
  const titles = { path: "Path parameters", query: "Query parameters", header: "Headers", cookie: "Cookies" };
  return el("section", { class: "parameters" }, el("h2", {}, titles[place]),
    el("ul", { class: "fields" }, found.map((parameter) => parameterRow({ ...parameter, in: "" }))));
}

/** Renders the schema of each media type. */
function mediaTypes(content) {
  return content.map(([type, media]) => el("div", { class: "media" }, el("p", { class: "hint" }, el("code", {}, type)), mediaSchema(media)));
}

function mediaSchema(media) {
  const event = media["x-event-schema"];
  if (!event) return media.schema && schemaTree(media.schema);
  // The alternatives of an event are listed by name under Events.
  const { oneOf, ...common } = resolved(event);
  return [media.schema?.description && markdown(media.schema.description, 4), el("p", { class: "type" }, "Each event:"), schemaTree(common, [], false)];
}

/** Lists the responses. The first successful one is open, the others are built when they are opened. */
function responseList(responses) {
  const open = Object.keys(responses).find((status) => status < 300);
  return el("ul", { class: "answers" }, Object.entries(responses).map(([status, given]) => {
    const response = resolved(given);
    const summary = [el("b", { class: status < 400 ? "good" : "bad" }, status), el("span", {}, inlineMarkdown(response.description))];
    const headers = Object.entries(response.headers ?? {});
    const content = Object.entries(response.content ?? {});
    const make = () => [
      headers.length > 0 ? el("h3", {}, "Headers") : "",
      headers.length > 0 ? el("ul", { class: "fields" }, headers.map(([name, header]) => parameterRow({ ...resolved(header), name, in: "" }))) : "",
      ...mediaTypes(content),
    ];
    if (headers.length === 0 && content.length === 0) return el("li", {}, el("p", { class: "plain" }, summary));
    if (status === open) return el("li", {}, el("details", { open: true }, el("summary", {}, summary), make()));
    return el("li", {}, folded({}, el("summary", {}, summary), make));
  }));
}

const eventLinks = (events) => el("ul", { class: "links" }, Object.keys(events).map((name) => el("li", {}, el("a", { href: `#event-${name}` }, name))));

// MARK: Examples

function code(title, text) {
  const button = el("button", { type: "button", class: "quiet", onclick: () => copy(text, button) }, "Copy");
  return el("section", { class: "sample" }, el("header", {}, el("h2", {}, title), button), el("pre", { tabindex: "0", "aria-label": title }, text));
}

const samples = (described) => (described["x-codeSamples"] ?? []).map(({ lang, label, source }) =>
  code(label ?? languages[lang] ?? lang, source.trim().replaceAll(exampleURL, serviceURL)));

const shown = (value) => (typeof value === "string" ? value.trim() : JSON.stringify(value, null, 2));

function exampleBlock(title, content) {
  const value = content.map(([, media]) => exampleOf(media)).find((value) => value !== undefined);
  return value === undefined ? null : code(title, shown(value));
}

function responseExample(responses) {
  for (const [status, response] of Object.entries(responses)) {
    const block = status < 300 && exampleBlock(`Response ${status}`, Object.entries(resolved(response).content ?? {}));
    if (block) return block;
  }
  return null;
}

// MARK: Events, webhooks and schemas

/** @returns {Topic} */
function named(id, name, schema, more = () => []) {
  const description = resolved(schema)?.description;
  return {
    id, title: name, label: () => [el("code", { class: "title" }, name)],
    // The first paragraph stands in lists.
    lead: description?.split("\n\n")[0].replaceAll("\n", " "), text: `${name} ${JSON.stringify(schema)}`.toLowerCase(),
    make: () => el("article", { class: "shape", id }, heading(name), ...more(), schemaTree(schema)),
  };
}

const events = () => Object.entries(api.paths["/v1/stream"].get["x-events"]).map(([name, schema]) =>
  named(`event-${name}`, name, schema, () => [el("p", { class: "hint" }, "Event of ", el("a", { href: "#openStream" }, "event streams"), ". Schema of its data:")]));

const webhooks = () => Object.entries(api.webhooks ?? {}).map(([name, { post }]) => operation({
  ...post, operationId: `webhook-${name}`, method: "POST", path: "webhookURL", parameters: (post.parameters ?? []).map(resolved), security: [], isWebhook: true,
}));

const schemas = () => Object.keys(api.components.schemas).sort().map((name) =>
  named(`schema-${name}`, name, api.components.schemas[name]));

// MARK: Search

/** Shows the entries whose description contains all words. */
function find() {
  const words = $("find").value.toLowerCase().split(/\s+/).filter((word) => word !== "");
  let count = 0;
  for (const { topics, node } of groups) {
    let isEmpty = true;
    for (const { entry, text } of topics) {
      const isFound = words.every((word) => text.includes(word));
      entry.hidden = !isFound;
      if (!isFound) continue;
      isEmpty = false;
      count += 1;
    }
    node.hidden = isEmpty;
    node.open = words.length > 0 && !isEmpty;
  }
  openContents(words.length > 0);
  write("found", words.length === 0 ? "" : count === 0 ? "No entry contains all these words." : `${count} found`);
  if (words.length === 0) mark(places.get(decodeURIComponent(location.hash.slice(1))));
}

/** `/` starts a search, Enter opens the first result, Escape ends the search. */
function shortcut(event) {
  const isTyping = event.target.closest("input, textarea");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    $("find").focus();
  } else if (event.target !== $("find")) {
    return;
  } else if (event.key === "Escape") {
    $("find").value = "";
    find();
  } else if (event.key === "Enter" && $("find").value.trim() !== "") {
    $("contents").querySelector("details:not([hidden]) li:not([hidden]) a")?.click();
  }
}

start();

// A form that sends one request of the API. It uses the token of the console, which stays in this tab.
import { $, el, folded, write } from "./dom.js";
import { exampleOf, resolved, securityScheme } from "./shapes.js";

const storageKey = "bellhop console";
const root = new URL("..", import.meta.url).href;
export const serviceURL = root.replace(/\/$/, "");
/** Limits of the shown answer. A longer stream is better followed with curl. */
const [linesMax, charactersMax] = [400, 40_000];

const stored = () => {
  try {
    return JSON.parse(sessionStorage.getItem(storageKey)) ?? {};
  } catch {
    return {};
  }
};
const token = () => ($("token")?.value ?? "").trim();

/** Returns the field for the token, which the console shares, with a note below it. */
function tokenField() {
  const input = el("textarea", {
    id: "token", class: "mono", rows: "2", autocomplete: "off", spellcheck: "false", placeholder: "bellhop token --subject ada prints one",
  });
  const note = el("p", { class: "hint", id: "token-note" });
  const describe = () => write(note, input.value.trim()
    ? "The token stays in this tab and is sent only to this service." : "Without a token, the service answers 401.");
  input.value = stored().token ?? "";
  input.addEventListener("input", () => {
    const { token: _, ...rest } = stored();
    sessionStorage.setItem(storageKey, JSON.stringify(token() ? { ...rest, token: token() } : rest));
    describe();
  });
  describe();
  return [el("label", { for: "token" }, "Token"), input, note];
}

/** Returns a form for one request with a place for its answer; null for a webhook, which the service sends. */
export function attempt(described) {
  return described.isWebhook ? null : folded({ class: "attempt" }, el("summary", {}, "Try it"), () => form(described));
}

/** Returns the parameters of the form: those of the operation and the keys that authenticate in a header. */
function parametersOf({ parameters, security }) {
  const keys = security.flatMap(Object.keys).map(securityScheme).filter((scheme) => scheme.type === "apiKey" && scheme.in === "header");
  // The form sends the token in a header, so it needs no ticket.
  const own = parameters.filter(({ name }) => name !== "ticket");
  return [...own, ...keys.filter(({ name }) => !own.some((parameter) => parameter.name === name)).map(({ name }) => ({ name, in: "header" }))];
}

function form(described) {
  const { operationId, method, path, requestBody, security } = described;
  const takesToken = security.some((entry) => "bearer" in entry);
  const inputs = parametersOf(described).map((parameter) => {
    const id = `${operationId}-${parameter.name}`;
    const value = parameter.required ? parameter.example ?? resolved(parameter.schema)?.example ?? "" : "";
    const input = el("input", { id, class: "mono", value, required: parameter.required ?? false, autocomplete: "off", spellcheck: "false" });
    return { parameter, input, label: el("label", { for: id }, parameter.name, el("small", {}, parameter.required ? "required" : parameter.in)) };
  });
  const [type, media] = Object.entries(requestBody ? resolved(requestBody).content : {})[0] ?? [];
  const body = type && el("textarea", { id: `${operationId}-body`, class: "mono", rows: "8", spellcheck: "false" });
  const example = exampleOf(media);
  if (body) body.value = typeof example === "string" ? example : JSON.stringify(example ?? {}, null, 2);
  const answer = el("div", { class: "answer", "aria-live": "polite" });
  const [send, stop] = [el("button", { class: "main" }, "Send"), el("button", { type: "button", hidden: true }, "Stop")];
  let running = null;
  const request = () => {
    let address = path.replace(/\{([^}]+)\}/g, (_, name) => encodeURIComponent(inputs.find(({ parameter }) => parameter.name === name)?.input.value ?? ""));
    const given = (place) => inputs.filter(({ parameter, input }) => parameter.in === place && input.value !== "").map(({ parameter, input }) => [parameter.name, input.value]);
    const query = new URLSearchParams(given("query")).toString();
    if (query) address += `?${query}`;
    const headers = Object.fromEntries(given("header"));
    if (takesToken && token()) headers.Authorization = `Bearer ${token()}`;
    if (body) headers["Content-Type"] = type;
    return { url: root + address.slice(1), options: { method, headers, ...(body ? { body: body.value } : {}) } };
  };
  const page = el("form", { onsubmit: (event) => {
    event.preventDefault();
    running?.abort();
    running = new AbortController();
    stop.hidden = false;
    run(request(), answer, running.signal).finally(() => (stop.hidden = true));
  } },
    takesToken && tokenField(),
    inputs.flatMap(({ label, input }) => [label, input]),
    body ? [el("label", { for: body.id }, "Body", el("small", {}, type)), body] : null,
    el("div", { class: "actions" }, send, stop, el("button", { type: "button", class: "quiet", onclick: () => showCommand(request(), answer) }, "As curl")), answer);
  stop.addEventListener("click", () => running?.abort());
  // A request, such as an open stream, ends when the reader goes to another place.
  addEventListener("hashchange", () => running?.abort(), { once: true });
  return [page];
}

async function run({ url, options }, place, signal) {
  const begun = performance.now();
  place.replaceChildren(el("p", { class: "hint" }, "Sending …"));
  try {
    const response = await fetch(url, { ...options, signal, cache: "no-store" });
    const took = `${Math.round(performance.now() - begun)} ms`;
    const content = el("pre", { tabindex: "0", "aria-label": "Answer" });
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    place.replaceChildren(
      el("p", {}, el("b", {}, String(response.status)), " ", el("small", {}, took)),
      el("details", {}, el("summary", {}, "Headers"), el("pre", {}, headers)), content);
    await read(response, content, signal);
  } catch (error) {
    if (!signal.aborted) place.replaceChildren(el("p", { class: "problem" }, `The request failed: ${error.message}`));
  }
}

async function read(response, place, signal) {
  const type = response.headers.get("Content-Type") ?? "";
  if (!type.startsWith("text/event-stream")) {
    const text = await response.text();
    place.textContent = (type.includes("json") ? pretty(text) : text).slice(0, charactersMax) || "(no body)";
    return;
  }
  // Of a stream, the newest lines are kept.
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done && !signal.aborted; part = await reader.read()) {
    text = (text + part.value).split("\n").slice(-linesMax).join("\n").slice(-charactersMax);
    place.textContent = text;
    place.scrollTop = place.scrollHeight;
  }
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Shows the request as a command. The token is a variable, because the shell keeps commands in its history. */
function showCommand({ url, options }, place) {
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const headers = Object.entries(options.headers).map(([name, value]) => ` \\\n  -H ${name === "Authorization" ? `"Authorization: Bearer $TOKEN"` : quoted(`${name}: ${value}`)}`);
  const data = options.body === undefined ? "" : ` \\\n  --data ${quoted(options.body)}`;
  const command = `curl -i${options.method === "GET" ? "" : ` -X ${options.method}`} ${quoted(url)}${headers.join("")}${data}`;
  const note = el("p", { class: "hint" }, "");
  place.replaceChildren(el("pre", { tabindex: "0", "aria-label": "Command" }, command), note);
  navigator.clipboard?.writeText(command).then(() => (note.textContent = "Copied."), () => {});
}

// Trying a request: with the token of the console, which stays in this tab.
import { $, el, folded, write } from "./dom.js";
import { resolved } from "./shapes.js";

const storageKey = "bellhop console";
const root = new URL("..", import.meta.url).href;
/** Of a stream that is tried: whoever wants more takes curl. */
const [linesMax, charactersMax] = [400, 40_000];

const stored = () => {
  try {
    return JSON.parse(sessionStorage.getItem(storageKey)) ?? {};
  } catch {
    return {};
  }
};
const token = () => $("token").value.trim();

export function followToken() {
  $("token").value = stored().token ?? "";
  const note = () => write("token-note", token() ? "It stays in this tab, and goes to this service alone." : "Without one, only what anybody may ask is answered.");
  $("token").addEventListener("input", () => {
    const { token: _, ...rest } = stored();
    sessionStorage.setItem(storageKey, JSON.stringify(token() ? { ...rest, token: token() } : rest));
    note();
  });
  note();
}

/** A form for one request, and a place for its answer. */
export function attempt(described) {
  return described.isTheirs ? null : folded({ class: "attempt" }, el("summary", {}, "Try it"), () => form(described));
}

function form({ operationId, method, path, parameters, requestBody, security }) {
  const inputs = parameters.filter(({ name }) => !["ticket"].includes(name)).map((parameter) => {
    const id = `${operationId}-${parameter.name}`;
    const value = parameter.required ? parameter.example ?? resolved(parameter.schema)?.example ?? "" : "";
    const input = el("input", { id, class: "mono", value, required: parameter.required ?? false, autocomplete: "off", spellcheck: "false" });
    return { parameter, input, label: el("label", { for: id }, parameter.name, el("small", {}, parameter.required ? "needed" : parameter.in)) };
  });
  const [type, media] = Object.entries(requestBody ? resolved(requestBody).content : {})[0] ?? [];
  const body = type && el("textarea", { id: `${operationId}-body`, class: "mono", rows: "8", spellcheck: "false" });
  const example = media && (media.example ?? Object.values(media.examples ?? {})[0]?.value);
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
    if (token() && security.length > 0) headers.Authorization = `Bearer ${token()}`;
    if (body) headers["Content-Type"] = type;
    return { url: root + address.slice(1), options: { method, headers, ...(body ? { body: body.value } : {}) } };
  };
  const page = el("form", { onsubmit: (event) => {
    event.preventDefault();
    running?.abort();
    running = new AbortController();
    stop.hidden = false;
    run(request(), answer, running.signal).finally(() => (stop.hidden = true));
  } }, inputs.flatMap(({ label, input }) => [label, input]),
    body ? [el("label", { for: body.id }, "body", el("small", {}, type)), body] : null,
    el("div", { class: "actions" }, send, stop, el("button", { type: "button", class: "quiet", onclick: () => copy(request(), answer) }, "As curl")), answer);
  stop.addEventListener("click", () => running?.abort());
  return [page];
}

async function run({ url, options }, place, signal) {
  const begun = performance.now();
  place.replaceChildren(el("p", { class: "hint" }, "It is sent …"));
  try {
    const response = await fetch(url, { ...options, signal, cache: "no-store" });
    const took = `${Math.round(performance.now() - begun)} ms`;
    const content = el("pre", { tabindex: "0" });
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    place.replaceChildren(
      el("p", {}, el("b", {}, String(response.status)), " ", el("small", {}, took)),
      el("details", {}, el("summary", {}, "Headers"), el("pre", {}, headers)), content);
    await read(response, content, signal);
  } catch (error) {
    if (!signal.aborted) place.replaceChildren(el("p", { class: "problem" }, `It could not be sent: ${error.message}`));
  }
}

async function read(response, place, signal) {
  const type = response.headers.get("Content-Type") ?? "";
  if (!type.startsWith("text/event-stream")) {
    const text = await response.text();
    place.textContent = (type.includes("json") ? pretty(text) : text).slice(0, charactersMax) || "(nothing)";
    return;
  }
  // What has come last stays.
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

/** The same request for a terminal, whose token is a variable there: a command is remembered by the shell. */
function copy({ url, options }, place) {
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const headers = Object.entries(options.headers).map(([name, value]) => ` \\\n  -H ${name === "Authorization" ? `"Authorization: Bearer $TOKEN"` : quoted(`${name}: ${value}`)}`);
  const data = options.body === undefined ? "" : ` \\\n  --data ${quoted(options.body)}`;
  const command = `curl -i${options.method === "GET" ? "" : ` -X ${options.method}`} ${quoted(url)}${headers.join("")}${data}`;
  const note = el("p", { class: "hint" }, "");
  place.replaceChildren(el("pre", { tabindex: "0" }, command), note);
  navigator.clipboard?.writeText(command).then(() => (note.textContent = "It is copied."), () => {});
}

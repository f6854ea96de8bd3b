// The page at /: sign-in and the three views of a session.
import { $, el, everySecond, problem, show, write } from "./dom.js";
import "./status.js";
import "./cards.js";
import "./places.js";
import "./events.js";
import "./tools.js";
import "./publish.js";
import "./notify.js";
import { showOperations } from "./operations.js";
import { begin, bell, claims, expiresAt, fetchText, onSession, open, session } from "./session.js";

const views = ["live", "develop", "operations"];
let mayOperate = false;

// MARK: Views

function view() {
  const wanted = location.hash.slice(1);
  return wanted === "operations" && !mayOperate || !views.includes(wanted) ? "live" : wanted;
}

function draw() {
  const isIn = session !== null;
  const current = view();
  show("welcome", !isIn);
  show("views", isIn);
  show("who", isIn);
  show("to-operations", mayOperate);
  if (!isIn) show("notice", false);
  for (const name of views) show(`view-${name}`, isIn && name === current);
  for (const link of document.querySelectorAll("#views a")) {
    if (link.getAttribute("href") === `#${current}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  showOperations(isIn && current === "operations");
  if (isIn) write("user", bell?.user ?? claims(session.token).sub ?? "");
  document.title = isIn ? `${claims(session.token).sub ?? "Bellhop"} · Bellhop` : "Bellhop";
}

/** Shows a text on the live view while all its cards are empty. */
function drawNothing() {
  const cards = [...document.querySelectorAll("#view-live .column .card:not(#card-latest)")];
  const isEmpty = cards.every((card) => card.hidden);
  show("nothing", isEmpty && session !== null);
  const isLive = bell?.connection.get().status === "live";
  if (isEmpty && session) {
    write("nothing", isLive ? `There is nothing for ${bell.user} yet. New events appear here without a reload.`
      : "Events appear here when the page is live.");
  }
}

everySecond(() => {
  if (session) drawNothing();
});

onSession((connected) => {
  mayOperate = false;
  draw();
  drawNothing();
  // Updates the text at once instead of at the next second.
  return connected.on("*", () => requestAnimationFrame(drawNothing));
});

addEventListener("bellhop:me", ({ detail }) => {
  mayOperate = detail.isService || detail.role === "admin" || detail.role === "service_role";
  draw();
});
addEventListener("bellhop:session", () => {
  mayOperate = false;
  draw();
  offer();
  $("token").focus();
});

// MARK: Sign-in

$("open").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = $("token").value.trim();
  const isToken = /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token);
  problem("open-problem", isToken ? "" : "This is not a token. A token has three parts, separated by dots.");
  if (!isToken) return;
  open({ token, shop: $("shop").value, backend: $("backend").value });
  $("token").value = $("backend").value = "";
  $("main").focus();
});

/** Offers the tokens that `make run` passes to the service. */
async function offer() {
  let tokens = [];
  try {
    ({ tokens } = JSON.parse(await fetchText("/console/tokens")));
  } catch {
    // The form for a token is enough.
  }
  const usable = tokens.filter((token) => (expiresAt(token) ?? Infinity) > Date.now());
  const roleOf = (token) => claims(token).app_metadata?.user_role ?? claims(token).role;
  const backend = usable.find((token) => roleOf(token) === "service_role") ?? "";
  const buttons = usable.map((token, index) => {
    const role = roleOf(token);
    const name = `Continue as ${claims(token).sub}${role && role !== "authenticated" ? ` (${role})` : ""}`;
    return el("button", {
      class: index === 0 ? "main" : null, type: "button",
      onclick: () => {
        open({ token, shop: $("shop").value, backend: token === backend ? "" : backend });
        $("main").focus();
      },
    }, name);
  });
  $("offered").replaceChildren(...buttons);
  show("offer", buttons.length > 0);
}

/** Opens a session from a link with a token, as `make run` and `bellhop demo` print it. Browsers do not send the fragment
 * to a server. It is removed from the address first, so that the token does not stay in the browser's history. */
function openLink() {
  const fragment = new URLSearchParams(location.hash.replace(/^#\??/, ""));
  const token = fragment.get("token");
  if (!token) return false;
  history.replaceState(null, "", location.pathname + location.search);
  open({ token, shop: fragment.get("shop") ?? "", backend: fragment.get("backend") ?? "" });
  return true;
}

// A link that is pasted into the open page changes only the fragment and does not load the page again.
addEventListener("hashchange", () => {
  openLink();
  draw();
});

if (!openLink()) {
  begin();
  if (!session) offer();
}
draw();

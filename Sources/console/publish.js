// The form that publishes an event of the app, as a backend does.
import { $, el, problem, show } from "./dom.js";
import { backendToken, drawShotHint, isBackend } from "./cards.js";
import { backendCall, bell, claims, onSession, setBackend, Stale } from "./session.js";

/** Shows the field for a backend's token if the session has none. */
function drawBackendPart() {
  show("publish-backend-part", !backendToken());
}

/** Returns the token to publish with, and keeps a new one for the session. */
function publisher() {
  const given = $("publish-backend").value.trim();
  if (given && !isBackend(claims(given))) throw new Error("This token has another role than service_role.");
  if (given) setBackend(given);
  const token = backendToken();
  if (!token) throw new Error("Publishing requires a backend’s token, with the role service_role.");
  drawBackendPart();
  drawShotHint();
  return token;
}

/** Returns the body of `POST /v1/publish`. */
function eventOf() {
  const target = $("publish-to").value.trim();
  const isTopic = $("publish-kind").value === "topic";
  let data;
  try {
    data = JSON.parse($("publish-data").value);
  } catch (error) {
    throw new Error(`The data is not valid JSON: ${error.message}`);
  }
  const keys = target.split(/[\s,]+/).filter((key) => key !== "");
  return { event: $("publish-event").value.trim(), ...(isTopic ? { topic: target } : { to: keys }), data };
}

$("publish-kind").addEventListener("change", () => {
  const isTopic = $("publish-kind").value === "topic";
  $("publish-to").placeholder = isTopic ? "order:o1" : "user:ada, shop:s1:staff";
  $("publish-to").value = isTopic ? "" : `user:${bell?.user ?? ""}`;
});

$("publish").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("published").replaceChildren();
  try {
    const sent = eventOf();
    await backendCall(publisher(), "/v1/publish", sent);
    problem("publish-problem", "");
    $("published").replaceChildren(el("p", { class: "hint" },
      `Published ${sent.event}. If your token holds one of its keys, it appears under Events.`));
  } catch (error) {
    if (!(error instanceof Stale)) problem("publish-problem", error.message);
  }
});

onSession((connected) => {
  drawBackendPart();
  problem("publish-problem", "");
  $("published").replaceChildren();
  // The user's id is known once the stream is open.
  const fill = () => {
    if ($("publish-to").value === "" && $("publish-kind").value === "keys" && connected.user) $("publish-to").value = `user:${connected.user}`;
  };
  $("publish-to").value = "";
  fill();
  return connected.connection.subscribe(fill);
});

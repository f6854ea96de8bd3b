// The cards of a user: counts, notifications, conversations and requests; and the delivery test.
import { $, counted, el, list, problem, show, when, write } from "./dom.js";
import { api, backendCall, bell, claims, has, onSession, Refusal, session, Stale } from "./session.js";

/** Shows the error of an action; the next action that succeeds removes it. */
export const shown = (work) => Promise.resolve(work).then(() => problem("problem", ""), (error) => {
  if (!(error instanceof Stale)) problem("problem", error.message);
});

/** Throws if the service refused a command. Commands of stores resolve with any answer. */
export const answered = async (work) => {
  const answer = await work;
  if (answer && (answer.status === 0 || answer.status >= 400)) throw new Refusal(answer);
};

/** Throttles a reload: it starts 60 ms after the first call, and then at most every 1.5 seconds. */
export function reloading(load) {
  let timer = 0;
  let last = 0;
  return {
    soon() {
      if (timer) return;
      timer = setTimeout(() => {
        timer = 0;
        last = Date.now();
        shown(load());
      }, Math.max(60, last + 1500 - Date.now()));
    },
    stop: () => clearTimeout(timer),
  };
}

/** Runs now and with every new stream, because data loaded earlier can be outdated. The connection's state is used
 * because a tab that joins the stream of other tabs receives no `stream:ready`.
 * @returns {() => void} */
export function withEveryStream(connected, run) {
  let of = null;
  const look = () => {
    const { status, streamId } = connected.connection.get();
    if (status !== "live" || streamId === of) return;
    of = streamId;
    run();
  };
  look();
  return connected.connection.subscribe(look);
}

/** Draws a store now and after every change.
 * @returns {() => void} */
export function follow(store, draw) {
  const run = () => draw(store.get());
  const off = store.subscribe(run);
  run();
  return off;
}

function drawBadges(counts) {
  show("card-badges", Boolean(counts));
  if (!counts) return;
  const names = [
    ["total", "total", true], ["bell", "notifications", has("bell")], ["messages", "messages", has("chat")],
    ["requests", "requests", has("requests")],
  ].filter(([, , isShown]) => isShown);
  list($("badges"), names.map(([name, label]) => ({
    key: name, sign: counts[name],
    make: () => el("div", { class: `badge ${name}` },
      el("b", {}, counts[name].toLocaleString("en")), el("span", {}, label)),
  })));
}

const isPressing = ({ priority }) => priority === "HIGH" || priority === "URGENT";

/** The number of notifications without “Show more”. */
const fewNotifications = 6;
let areAllShown = false;

function drawNotifications({ items }, store) {
  show("card-notifications", items.length > 0);
  show("more-notifications", items.length > fewNotifications);
  write("more-notifications", areAllShown ? "Show fewer" : `Show ${items.length - fewNotifications} more`);
  show("seen-all", items.some((item) => !item.seenAt));
  list($("notifications"), items.slice(0, areAllShown ? items.length : fewNotifications).map((item) => ({
    key: item.id, sign: [item.title, item.message, item.priority, item.seenAt, item.readAt],
    make: () => el("li", { class: item.seenAt ? "note seen" : "note" },
      el("div", {},
        el("strong", {}, item.title),
        isPressing(item) && el("span", { class: `tag ${item.priority}` }, item.priority.toLowerCase()),
        when(item.createdAt)),
      el("p", {}, item.message),
      el("div", { class: "actions" },
        !item.readAt && el("button", { "data-name": "read", onclick: () => shown(answered(store.markRead(item.id))) },
          "Read", el("span", { class: "hidden" }, `: ${item.title}`)),
        el("button", { "data-name": "archive", onclick: () => shown(answered(store.archive(item.id))) },
          "Archive", el("span", { class: "hidden" }, `: ${item.title}`)))),
  })));
}

// MARK: Conversations and requests

/** @type {Map<string, string>} the other members of conversations without a title, which serve as names */
let members = new Map();

async function nameConversations(items, store) {
  for (const { id, title } of items.slice(0, 8)) {
    if (title || members.has(id)) continue;
    members.set(id, "");
    const others = (await api("GET", `/v1/conversations/${encodeURIComponent(id)}`)).members
      .filter((member) => member !== bell.user);
    members.set(id, others.slice(0, 4).join(", ") + (others.length > 4 ? ", …" : ""));
    drawConversations(store.get(), store);
  }
}

function drawConversations({ items }, store) {
  show("card-conversations", items.length > 0);
  list($("conversations"), items.slice(0, 8).map((item) => {
    const last = item.lastMessage;
    const name = item.title || members.get(item.id) || item.id;
    const sender = last?.senderId === bell.user ? "you" : last?.senderId;
    const line = last ? `${sender}: ${last.preview ?? "deleted message"}` : "no messages";
    const place = `/v1/conversations/${encodeURIComponent(item.id)}/read-position`;
    const read = () => api("PUT", place, { sequence: item.lastSequence });
    return {
      key: item.id, sign: [name, line, item.unread],
      make: () => el("li", { class: "line" },
        el("span", {}, el("strong", {}, name), el("small", {}, line)),
        el("span", { class: "side" },
          item.unread ? el("span", { class: "count" }, `${item.unread} unread`) : null,
          item.unread ? el("button", { "data-name": "read", onclick: () => shown(read()) }, "Read",
            el("span", { class: "hidden" }, `: ${name}`)) : last && when(last.sentAt))),
    };
  }));
  shown(nameConversations(items, store));
}

async function loadRequests() {
  const { items } = await api("GET", "/v1/requests?direction=incoming&status=open&limit=10");
  show("card-requests", items.length > 0);
  const answer = (item, status) => shown(api("PATCH", `/v1/requests/${encodeURIComponent(item.id)}`, { status }));
  list($("requests"), items.map((item) => ({
    key: item.id, sign: item,
    make: () => el("li", { class: "line" },
      el("span", {},
        el("strong", {}, item.fromName || item.fromUserId), el("small", {}, `${item.kind}, `, when(item.createdAt))),
      el("span", { class: "side" },
        el("button", { "data-name": "accept", onclick: () => answer(item, "accepted") }, "Accept"),
        el("button", { "data-name": "decline", onclick: () => answer(item, "declined") }, "Decline"))),
  })));
}

onSession((connected) => {
  members = new Map();
  areAllShown = false;
  const requests = reloading(loadRequests);
  const offs = [
    follow(connected.badges, drawBadges),
    // A store begins to load when it is named.
    has("bell") && follow(connected.notifications, (state) => drawNotifications(state, connected.notifications)),
    has("chat") && follow(connected.conversations, (state) => drawConversations(state, connected.conversations)),
    connected.on("*", ({ name, data }) => {
      if (name.startsWith("request:") || name === "stream:resync" && has("requests")) requests.soon();
      if (name === "conversation:updated") members.delete(data.conversation?.id);
    }),
    has("requests") && withEveryStream(connected, requests.soon), requests.stop,
  ].filter(Boolean);
  return () => {
    offs.forEach((off) => off());
    for (const id of ["badges", "notifications", "conversations", "requests"]) {
      list($(id), []);
      show(`card-${id}`, false);
    }
  };
});

$("more-notifications").addEventListener("click", () => {
  areAllShown = !areAllShown;
  drawNotifications(bell.notifications.get(), bell.notifications);
});
$("seen-all").addEventListener("click", () => shown(answered(bell.notifications.markAllSeen())));

// MARK: Delivery test

const shotsMax = 24;
let shots = [];

/** A user that does not exist, whom the test follows and unfollows without a backend token. */
const absent = "bellhop-test";

/** Returns the token for calls as a backend: the separate token, or the session's own if its role allows it. */
export const backendToken = () => session?.backend || (isBackend(claims(session?.token ?? "")) ? session.token : "");
export const isBackend = (claimed) =>
  (claimed.app_metadata?.user_role ?? claimed.role) === "service_role";

/** The ways to cause an event of the user: as the backend, or as the user. */
const tests = {
  notification: {
    isPossible: () => has("bell") && backendToken(),
    hint: "Creates a notification as your backend does, and measures the time until it arrives on the stream.",
    isMeant: ({ name, data }, id) => name === "notification:created" && data.eventId === id,
    cause: (id) => backendCall(backendToken(), "/v1/events", {
      id, type: "visit.created", userId: bell.user,
      data: { visitId: id, visitType: "Check-up", hospital: "St. Mary", status: "confirmed" },
    }),
  },
  event: {
    isPossible: () => has("publish") && backendToken(),
    hint: "Publishes an event as your backend does, and measures the time until it arrives on the stream.",
    isMeant: ({ name, data }, id) => name === "test:sent" && data.id === id,
    cause: (id) => backendCall(backendToken(), "/v1/publish", { event: "test:sent", to: [`user:${bell.user}`], data: { id } }),
  },
  follower: {
    isPossible: () => has("social"),
    hint: `Follows and unfollows “${absent}”, and measures the time until the event arrives. With a backend token, the test creates a notification.`,
    isMeant: ({ name, data }) => name === "follow:changed" && data.authorId === absent && data.followed,
    cause: () => api("PUT", `/v1/users/${absent}/followers/me`),
    undo: () => api("DELETE", `/v1/users/${absent}/followers/me`),
  },
};
const possibleTest = () => Object.values(tests).find((one) => one.isPossible());

export function drawShotHint() {
  const one = possibleTest();
  show("card-try", Boolean(one));
  write("try-hint", one?.hint ?? "");
}

/** Waits for one event; rejects after 10 seconds. */
function arrival(matches) {
  let off = () => {};
  const seen = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("The event was sent but did not arrive within 10 seconds.")), 10_000);
    off = bell.on("*", (event) => {
      if (!matches(event)) return;
      clearTimeout(timer);
      resolve({ name: event.name, at: performance.now() });
    });
  });
  return seen.finally(off);
}

async function shoot() {
  const one = possibleTest();
  const id = `test-${Date.now().toString(36)}`;
  const begun = performance.now();
  const seen = arrival((event) => one.isMeant(event, id));
  seen.catch(() => {});
  await one.cause(id);
  const { name, at } = await seen;
  await one.undo?.();
  shots = [...shots, at - begun].slice(-shotsMax);
  drawShots(name);
}

function drawShots(name) {
  show("shot", shots.length > 0);
  show("shot-spark", shots.length > 1);
  if (shots.length === 0) return;
  const ms = shots[shots.length - 1];
  write("shot-ms", ms < 10 ? ms.toFixed(1) : String(Math.round(ms)));
  write("shot-what", `from the click to the arrival of ${name}`);
  const most = Math.max(...shots);
  const svg = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(svg, "svg");
  drawing.setAttribute("viewBox", `0 0 ${shotsMax * 5} 28`);
  drawing.setAttribute("role", "img");
  const least = Math.round(Math.min(...shots));
  drawing.setAttribute("aria-label", `Last ${shots.length} tests: ${least} to ${Math.round(most)} ms`);
  shots.forEach((value, index) => {
    const bar = document.createElementNS(svg, "rect");
    const height = Math.max(2, 28 * value / most);
    const place = { x: index * 5, y: 28 - height, width: 3, height };
    for (const [key, number] of Object.entries(place)) bar.setAttribute(key, String(number));
    drawing.append(bar);
  });
  $("shot-spark").replaceChildren(drawing);
}

$("try").addEventListener("click", async () => {
  if (!bell) return;
  $("try").setAttribute("aria-busy", "true");
  await shown(shoot());
  $("try").removeAttribute("aria-busy");
});

onSession(() => {
  shots = [];
  show("shot", false);
  drawShotHint();
});

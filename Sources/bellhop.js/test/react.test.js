// The hooks with the real React (Debian's 18.2) and its test renderer, on a bell whose stream the test controls.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { hasReact, plainToken } from "./modules.js";
import { until } from "./service.js";
import { streamServer } from "./stream.js";

const skip = hasReact ? false : "no React: apt install node-react node-react-test-renderer";
const note = (id) => ({
  id, title: id, category: "visit", priority: "HIGH", data: {}, haptic: null, sound: false,
    createdAt: new Date().toISOString(),
  seenAt: null, readAt: null, archivedAt: null,
});
const counts = (bell, version) => ({ messages: 0, requests: 0, bell, total: bell, version, epoch: "e",
  asOf: new Date().toISOString() });
const status = (queueLength) => ({ shopId: "s1", queueLength, updatedAt: new Date().toISOString() });
const answers = {
  "GET /v1/notifications": { body: { items: [note("n1")], next: null } },
  "GET /v1/preferences": { body: { sound: true, haptics: true, quietHours: null, timeZone: "UTC" } },
  "PATCH /v1/notifications/n1": { status: 403, body: { code: "not_permitted", detail: "no" } },
  "GET /v1/conversations/c1": { body: { id: "c1", unread: 1, readPosition: 0 } },
  "GET /v1/conversations/c1/messages": { body: { items: [{ id: "m1", conversationId: "c1", sequence: 1,
    senderId: "ben", text: "Hi", sentAt: "x", deletedAt: null }], next: null } },
  "GET /v1/shops/s1/queue": { body: status(3) },
  "GET /v1/shops/s1/dj": { body: { shopId: "s1", isActive: true, currentTrack: null, queue: [], version: 1,
    epoch: "e" } },
  "GET /v1/challenges/c1/leaderboard": { body: { challengeId: "c1", entries: 1, version: 1, epoch: "e",
    items: [{ userId: "bo", displayName: "Bo", score: 3, rank: 1, position: 1 }], me: null } },
  "GET /v1/feed": { body: { items: [], next: null, newest: 0 } },
  "GET /v1/config": { body: { subscriptions: { valuesMax: 1000, perStreamMax: 100, valuesPerStreamMax: 10000,
    filterBytesMax: 65536 } } },
};

let React;
let renderer;
let hooks;
let server;
let bell;
before(async () => {
  if (skip) return;
  React = await import("react");
  renderer = (await import("react-test-renderer")).default;
  hooks = await import("../../../.build-js/react.js");
  server = await streamServer({ ...answers,
    ...Object.fromEntries([1, 2, 3, 4, 5, 6].map((n) => [`PUT /v1/streams/s${n}/subscriptions`,
    (body) => ({ body: { topics: ["personal", ...(body.topics ?? [])], tables: body.tables ?? [] } })])) });
  bell = connect({ url: server.url, token: plainToken("ada") });
  await until(() => bell.connection.get().status === "live");
});
after(async () => {
  bell?.close();
  await server?.stop();
});

/** Renders the result of `use` as text; `renders` counts the renderings. */
function mount(use) {
  const shown = { renders: 0, last: null, use };
  function Component() {
    shown.renders += 1;
    shown.last = shown.use();
    return React.createElement("p", null, JSON.stringify(shown.last));
  }
  const tree = () => React.createElement(hooks.BellhopProvider, { bell }, React.createElement(Component));
  const mounted = renderer.create(tree(), { unstable_strictMode: true });
  shown.update = () => mounted.update(tree());
  shown.unmount = () => mounted.unmount();
  return shown;
}
const shows = (shown, condition) => until(() => shown.last !== null && condition(shown.last), condition);

test("useBadges and useConnection show the current state, and render only on changes", { skip }, async () => {
  const badges = mount(() => hooks.useBadges());
  const connection = mount(() => hooks.useConnection());
  await shows(connection, (it) => it.status === "live");
  server.send("badges:update", counts(2, 5));
  await shows(badges, (it) => it.bell === 2);
  const before = badges.renders;
  server.send("badges:update", counts(9, 4));
  server.send("queue:update", status(1));
  server.send("badges:update", counts(3, 6));
  await shows(badges, (it) => it.bell === 3);
  assert.ok(badges.renders - before <= 2, `${badges.renders - before} renders of one change, in strict mode`);
  badges.unmount();
  connection.unmount();
});

test("useNotifications has the list and its commands; a refused change is reverted", { skip }, async () => {
  const list = mount(() => hooks.useNotifications());
  await shows(list, (it) => it.items.length === 1);
  const command = list.last.markSeen;
  command("n1");
  assert.ok(bell.notifications.get().items[0].seenAt);
  await shows(list, (it) => it.items[0].seenAt);
  await shows(list, (it) => !it.items[0].seenAt);
  assert.equal(list.last.markSeen, command, "commands stay the same function");
  server.send("notification:created", note("n2"));
  await shows(list, (it) => it.items[0].id === "n2");
  list.unmount();
});

test("useConversation, useQueue, useLeaderboard, useFeed and useDJ show their stores", { skip }, async () => {
  const chat = mount(() => hooks.useConversation("c1"));
  const queue = mount(() => hooks.useQueue("s1"));
  const board = mount(() => hooks.useLeaderboard("c1"));
  const feed = mount(() => hooks.useFeed());
  const dj = mount(() => hooks.useDJ("s1"));
  await shows(chat, (it) => it.messages.length === 1 && it.unread === 1 && typeof it.send === "function");
  await shows(queue, (it) => it.status !== null);
  await shows(board, (it) => it.lines.length === 1);
  await shows(feed, (it) => it.isLoaded && it.newCount === 0);
  await shows(dj, (it) => it.isActive && typeof it.vote === "function");
  server.send("queue:update", status(8));
  await shows(queue, (it) => it.status.queueLength === 8 && it.isLive);
  const subscribed = () => server.requests.filter(({ place }) => place.endsWith("/subscriptions"));
  const topics = () => subscribed().at(-1)?.body.topics ?? [];
  await until(() => ["queue:s1", "leaderboard:c1", "dj:s1"].every((topic) => topics().includes(topic)));
  for (const shown of [chat, queue, board, feed, dj]) shown.unmount();
});

test("another id shows another store, and an unmounted component watches none", { skip }, async () => {
  const shown = mount(() => hooks.useQueue("s1"));
  await shows(shown, (it) => it.status !== null);
  await until(() => bell.queue("s1").isWatched());
  shown.use = () => hooks.useQueue("s2");
  shown.update();
  await shows(shown, (it) => it.problem?.code === "not_found");
  await until(() => !bell.queue("s1").isWatched() && bell.queue("s2").isWatched());
  shown.unmount();
  await until(() => !bell.queue("s2").isWatched());
});

test("useVisibleRows subscribes to rows while the component is mounted", { skip }, async () => {
  const tables = () => server.requests.filter(({ place,
    body }) => place.endsWith("/subscriptions") && body.tables).at(-1)?.body.tables;
  const rows = mount(() => hooks.useVisibleRows("posts", ["p1", "p 2"]));
  await until(() => tables()?.[0]?.filter === "id=in.(p1,p 2)");
  server.send("engagement_update", { postIds: ["p1"], updates: { p1: { likeCount: 4 } } });
  await shows(rows, (it) => it.rows.p1?.likeCount === 4);
  rows.unmount();
  await until(() => tables()?.length === 0);
});

test("useRows shows the rows of a filter, with load", { skip }, async () => {
  const shown = mount(() => hooks.useRows("todos", { filter: "list_id=eq.7" }));
  await shows(shown, (it) => typeof it.load === "function" && Object.keys(it.rows).length === 0);
  await until(() => bell.rows("todos", { filter: "list_id=eq.7" }).isWatched());
  shown.last.load([{ id: 1, title: "Milk" }]);
  await shows(shown, (it) => it.rows["1"]?.title === "Milk");
  shown.unmount();
  await until(() => !bell.rows("todos", { filter: "list_id=eq.7" }).isWatched());
});

test("useEvent calls the latest function, until the component unmounts", { skip }, async () => {
  const heard = [];
  const shown = mount(() => hooks.useEvent("order:changed", ({ data }) => heard.push([data.status, shown.renders])));
  shown.update();
  server.send("order:changed", { status: "ready" });
  await until(() => heard.length === 1);
  assert.deepEqual(heard, [["ready", shown.renders]]);
  shown.unmount();
  const all = [];
  const off = bell.on("order:changed", ({ data }) => all.push(data.status));
  // React runs an effect's cleanup shortly after the component has been unmounted.
  for (let before = -1; before !== heard.length;) {
    before = heard.length;
    const count = all.length;
    server.send("order:changed", { status: "late" });
    await until(() => all.length > count);
  }
  off();
});

test("useInvalidation calls the latest function, until the component unmounts", { skip }, async () => {
  const told = [];
  const query = mount(() => hooks.useInvalidation(["todos", "ada"], () => told.push(query.renders)));
  await until(() => bell.invalidation.get());
  query.update();
  const cause = { schema: "public", table: "todos", type: "UPDATE", recordId: "1", actorId: null, originId: "other" };
  server.send("query:invalidate", { keys: [["todos"]], causes: [cause], causesComplete: true });
  await until(() => told.length === 1);
  assert.equal(told[0], query.renders);
  query.unmount();
  // React runs an effect's cleanup shortly after the component has been unmounted.
  await until(() => {
    const before = told.length;
    bell.invalidation.refetch(["todos"]);
    return told.length === before;
  });
});

test("without a provider, or with something else, the error says what to do", { skip }, () => {
  const silent = console.error;
  console.error = () => {};
  try {
    assert.throws(() => renderer.create(React.createElement(hooks.BellhopProvider, { bell: {} })), /needs a bell/);
    const Lone = () => hooks.useBadges() ?? null;
    assert.throws(() => renderer.create(React.createElement(Lone)), /no <BellhopProvider>/);
  } finally {
    console.error = silent;
  }
});

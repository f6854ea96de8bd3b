// Runs every example of README.md, and the client examples of the project's README, unchanged on the real service.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { hasReact } from "./modules.js";
import { binary, startService, until } from "./service.js";

const skip = binary ? false : "no binary of the service: set BELLHOP_BIN";
const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");
const split = (text, above = "") => text.split(/^##+ /m).slice(1).map((section) => ({
  title: above + section.slice(0, section.indexOf("\n")),
  blocks: [...section.matchAll(/^```(jsx?)\n([^]*?)^```/gm)].map(([, language, code]) => ({ language, code })),
}));
const [clients] = read("../../../README.md").split(/^## (?=Clients$)/m)[1].split(/^## /m);
const sections = [...split(read("../README.md")), ...split(clients, "Clients, ")];
const scope = /** @type {any} */ (globalThis);
const bells = [];
let service;
let folder;
let count = 0;
let backend;

/** Runs a block as its own module, which exports its declarations. */
async function run({ language, code }) {
  let source = code;
  if (language === "jsx") {
    const typescript = createRequire("/usr/share/nodejs/")("typescript");
    const { JsxEmit, ModuleKind, ScriptTarget } = typescript;
    const compilerOptions = { jsx: JsxEmit.React, module: ModuleKind.ESNext, target: ScriptTarget.ES2022 };
    source = `import * as React from "react";\n${typescript.transpileModule(code, { compilerOptions }).outputText}`;
  }
  // `connect` in an example needs this service's address, and an example's bell is used by the next one.
  source = source.replaceAll('url: "https://bells.example"', "url");
  const names = [...source.matchAll(/^const (?:(\w+)|\{([^}]*)\}|\[(\w+)\])/gm)]
    .flatMap(([, one, several, first]) => {
      return one ?? first ?? several.split(",").map((name) => name.split(":").pop().trim());
    });
  const file = join(folder, `example-${count += 1}.mjs`);
  writeFileSync(file, `${source}\nexport const declared = { ${names.join(", ")} };\n`);
  const made = await import(file);
  for (const one of Object.values(made.declared)) if (typeof one?.signOut === "function") bells.push(one);
  return { ...made, ...made.declared };
}

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "bellhop-readme-"));
  service = await startService({ flags: { tables: "todo" } });
  const token = service.token("backend", "--role", "service_role");
  backend = async (method, path, body, headers = {}) => {
    const answer = await fetch(service.url + path, {
      method, body: JSON.stringify(body), headers: { Authorization: `Bearer ${token}`,
        "Content-Type": "application/json", ...headers },
    });
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
    return answer.status === 204 ? null : answer.json();
  };
  await backend("PUT", "/v1/shops/s1", { name: "The Cut Club", timeZone: "UTC" });
  await backend("PUT", "/v1/shops/s1/dj", { isActive: true });
  await backend("POST", "/v1/shops/s1/dj/tracks", { trackId: "t1", trackName: "So What", artistName: "Miles Davis" });
  const [startsAt, endsAt] = [-1000, 3_600_000].map((ms) => new Date(Date.now() + ms).toISOString());
  await backend("PUT", "/v1/challenges/c1", { name: "Most cuts", mode: "add", startsAt, endsAt });
  await backend("POST", "/v1/events", { id: "e1", type: "visit.created", userId: "ada",
    data: { visitType: "Check-up" } });
  await backend("POST", "/v1/conversations", { memberIds: ["ada", "ben"], title: "Trip" });
  const booking = await backend("POST", "/v1/bookings", {
    shopId: "s1", userId: "ada", service: "cut", scheduledStart: new Date(Date.now() + 600_000).toISOString(),
      durationMinutes: 30,
  });
  const post = await backend("POST", "/v1/posts", { authorId: "gus", text: "Fresh fade" });
  const { url } = service;
  scope.drawn = new Map();
  Object.assign(scope, {
    url, token: service.token("ada"), connect, fetchToken: () => scope.token, draw: (name,
      value) => scope.drawn.set(name, value),
    bookingId: booking.id, postId: post.id, fetchTodos: async () => [], markAsReadElsewhere: async () => ({ status: 204 }),
      ding: { replayAsync: async () => {} },
  });
  scope.bell = connect({ url, token: scope.token });
  bells.push(scope.bell);
  await until(() => scope.bell.connection.get().status === "live");
});
after(async () => {
  for (const bell of bells) bell.close();
  if (folder) rmSync(folder, { recursive: true });
  await service?.stop();
});

/** The preparation of each example and the checks after it, by the title of its section. */
const ready = {
  Badges: () => scope.bell.badges.get(),
  Notifications: () => scope.bell.notifications.get().items.length > 0,
  Messages: () => scope.bell.conversations.get().items.length > 0,
  Requests: () => scope.bell.requests().get().isLoaded,
  "Queues and bookings": () => {
    return scope.bell.queue("s1").get().status && scope.bell.booking(scope.bookingId).get().isLoaded;
  },
  DJ: async () => {
    await scope.bell.call("PUT", "/v1/shops/s1/presence/me");
    return scope.bell.dj("s1").get().queue.length > 0;
  },
  Feed: async () => {
    await scope.bell.call("PUT", "/v1/users/gus/followers/me");
    scope.bell.feed().refresh();
    return scope.bell.feed().get().posts.length > 0;
  },
  // A separate post: the counts of the post liked earlier arrive one second later.
  "Rows on the screen": async () => {
    const { id } = await backend("POST", "/v1/posts", { authorId: "gus", text: "Another fade" });
    scope.postId = id;
    return true;
  },
};
const check = {
  "Ten lines that work": ({ bell }) => {
    return until(() => bell.connection.get().status === "live" && scope.drawn.get("list")?.length > 0);
  },
  "Clients, Browser": () => until(() => scope.drawn.get("badge") !== undefined),
  "Less than all of it": ({ bell }) => until(() => bell.badges.get() && scope.drawn.has("small") && !bell.feed),
  Notifications: () => {
    const { items, preferences } = scope.bell.notifications.get();
    return items[0].seenAt && !preferences.sound;
  },
  Messages: () => scope.bell.conversations.get().items[0].lastMessage.preview === "See you at nine.",
  Requests: () => until(() => scope.bell.requests("outgoing").get().items.some(({ toUserId }) => toUserId === "gus")),
  "Starting without a network": async ({ bell }) => {
    await until(() => bell.badges.get());
    return (await bell.signOut()).length === 0;
  },
  "Push messages": async ({ enable }) => (await enable()).status === "unsupported",
  "Queues and bookings": ({ status }) => {
    return status === 200 && scope.bell.booking(scope.bookingId).get().booking.status === "cancelled";
  },
  Leaderboards: async () => {
    await backend("POST", "/v1/challenges/c1/scores", { userId: "ada", score: 3 }, { "Idempotency-Key": "k1" });
    return until(() => scope.drawn.get("board")?.[1]?.rank === 1);
  },
  Feed: () => scope.bell.feed().get().posts[0].liked,
  DJ: ({ status }) => status === 200 && until(() => scope.bell.dj("s1").get().queue.length === 2),
  "Rows on the screen": async () => {
    await until(() => scope.bell.visibleRows("posts", { schema: "bellhop" }).get().isLive);
    await scope.bell.call("PUT", `/v1/posts/${scope.postId}/reposts/me`);
    return until(() => scope.bell.visibleRows("posts",
      { schema: "bellhop" }).get().rows[scope.postId]?.repostCount === 1);
  },
  "Rows by filter": () => until(() => scope.bell.rows("todos", { filter: "list_id=eq.7" }).get().isLive),
  "Calls, writes and topics": ({ answer }) => answer.body.userId === "ada",
  "TanStack Query": () => until(() => scope.queryClient.defaults.leaderboard?.staleTime === Infinity),
  "React Native": async ({ bell }) => {
    await until(() => bell.connection.get().status === "live");
    await bell.send("PUT", "/v1/users/hal/followers/me");
    bell.notifications.get();
    await until(() => bell.notifications.get().isLoaded);
    await backend("POST", "/v1/events", { id: "e2", type: "emergency.arriving", userId: "ada", data: {} });
    await until(() => scope.device.felt.length === 3);
    assert.deepEqual(scope.device.felt, ["error", "heavy", "heavy"]);
    return [...scope.device.stored.keys()].some((key) => key.endsWith("cursor"));
  },
};

/** Doubles of a device's packages, with their documented interfaces. */
function makeDevice() {
  const [felt, stored] = [[], new Map()];
  const haptics = {
    NotificationFeedbackType: { Success: "success", Warning: "warning", Error: "error" },
      ImpactFeedbackStyle: { Heavy: "heavy" },
    notificationAsync: async (kind) => void felt.push(kind), impactAsync: async (kind) => void felt.push(kind),
  };
  const storage = {
    getItem: async (key) => stored.get(key) ?? null, setItem: async (key, value) => void stored.set(key, value),
    removeItem: async (key) => void stored.delete(key), getAllKeys: async () => [...stored.keys()],
  };
  const listening = (rest) => ({ addEventListener: () => rest });
  return {
    felt, stored, haptics, storage, netInfo: listening(() => {}), appState: { currentState: "active",
      ...listening({ remove() {} }) },
  };
}
function makeQueryClient() {
  const defaults = {};
  return { defaults, invalidateQueries() {}, getQueryDefaults: () => ({}),
    setQueryDefaults: ([name], options) => void (defaults[name] = options) };
}

for (const { title, blocks } of sections) {
  blocks.forEach((block, index) => {
    test(`README, ${title}, example ${index + 1}`, { skip: skip || (block.language === "jsx" && !hasReact) },
      async () => {
      scope.device = makeDevice();
      scope.queryClient = makeQueryClient();
      if (ready[title]) await until(ready[title]);
      const made = await run(block);
      if (check[title] && index === 0) assert.ok(await check[title](made), `${title}: it does not do what it says`);
      if (block.language !== "jsx") return;
      const renderer = (await import("react-test-renderer")).default;
      const shown = renderer.create(made.app);
      await until(() => shown.toJSON()?.children?.length > 0);
      shown.unmount();
    });
  });
}

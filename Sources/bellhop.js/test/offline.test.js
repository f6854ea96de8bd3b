// A start without a network shows the state of the last one, and converges to the service's state afterwards.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { offline } from "../../../.build-js/offline.js";
import { memoryStorage } from "../../../.build-js/storage/memory.js";
import { movedClock } from "./clock.js";
import { plainToken } from "./modules.js";
import { binary, startService, until } from "./service.js";
import { streamServer } from "./stream.js";

const skip = !binary && "no binary: swift build";
const bells = [];
let service;
if (binary) service = await startService({ flags: { "rate-limit-user": 0 } });
after(async () => {
  bells.forEach((bell) => bell.close());
  await service?.stop();
});

/** A device: its storage outlives its starts. */
function device(url, user, { token = plainToken(user), storage = memoryStorage(), ...more } = {}) {
  const network = { isOnline: true, listener: () => {} };
  return {
    storage,
    network: {
      online: () => network.isOnline,
      listen(listener) {
        network.listener = listener;
        return () => {};
      },
    },
    set isOnline(isOnline) {
      network.isOnline = isOnline;
      network.listener({ online: isOnline });
    },
    /** Starts the app. `options` differ from those of the other starts. */
    start(options = {}) {
      const bell = connect({
        url, user, token, storage, network: this.network, transport: "fetch", tabs: "off", offline: offline(more),
        fetch: (...request) => network.isOnline ? fetch(...request) : Promise.reject(new TypeError("no network")),
        ...options,
      });
      bells.push(bell);
      return bell;
    },
  };
}
const shows = (store, condition) => until(() => condition(store.get()) && [store.get()]).then(([it]) => it);
const kept = async (storage, place) => (await storage.keys("bellhop 3 ")).filter((key) => key.includes(place));
/** Lets everything end that waits for nothing but the storage in memory. */
const idle = () => new Promise((done) => setImmediate(done));
/** A tab's access to a storage. From `isHeld = true` on, its `operation` waits for `release` at keys with this ending. */
function held(storage, operation, ending) {
  const it = { isHeld: false, isWaiting: false };
  const gate = new Promise((done) => { it.release = done; });
  it.storage = {
    ...storage,
    async [operation](key, ...more) {
      if (it.isHeld && key.endsWith(ending)) {
        it.isWaiting = true;
        await gate;
      }
      return storage[operation](key, ...more);
    },
  };
  return it;
}
const counts = (version, messages) => ({ messages, requests: 0, bell: 0, total: messages, version, epoch: "e", asOf: "" });
const backend = (method, path, body) => fetch(`${service.url}${path}`, {
  method, headers: { Authorization: `Bearer ${backend.token ??= service.token("b", "--role", "service_role")}`,
    "Content-Type": "application/json" }, body: JSON.stringify(body),
}).then((answer) => answer.json());

const visit = (id, userId) => backend("POST", "/v1/events", {
  id, type: "visit.created", userId, data: { visitId: id, visitType: "Check-up", hospital: "St. Mary", status: "confirmed" },
});

/** A device on which ada has seen three messages, and a service that has stopped since, unless it stays. */
async function leftByAda(stays = false, storage = memoryStorage()) {
  const server = await streamServer({ "GET /v1/badges": { body: counts(1, 3) } });
  const phone = device(server.url, "ada", { storage });
  const first = phone.start();
  await shows(first.badges, (it) => it?.messages === 3);
  first.close();
  await until(async () => (await kept(phone.storage, "kept/")).length === 1);
  if (!stays) await server.stop();
  return { server, phone };
}

test("R-VIS-NFR-1.4: a start without a network shows the last state before any request", { skip }, async () => {
  const phone = device(service.url, "off1", { token: service.token("off1") });
  const first = phone.start();
  await shows(first.notifications, (it) => it.isLoaded);
  await shows(first.badges, (it) => it !== null);
  await shows(first.feed(), (it) => it.isLoaded);
  await visit("off-v1", "off1");
  await shows(first.notifications, (it) => it.items.length === 1);
  await shows(first.badges, (it) => it.bell === 1);
  first.close();
  await until(async () => (await kept(phone.storage, "kept/")).length === 3);

  phone.isOnline = false;
  const requests = [];
  const refuse = (url) => {
    requests.push(url);
    return Promise.reject(new TypeError("no network"));
  };
  const second = phone.start({ token: () => Promise.reject(new Error("no network")), fetch: refuse });
  let before;
  second.notifications.subscribe(() => { before ??= [requests.length, second.notifications.get()]; });
  const [count, { items: [item], isLoaded }] = await until(() => before);
  assert.equal(item.title, "Check-up Scheduled");
  assert.equal(isLoaded, true);
  assert.equal(count, 0);
  await shows(second.badges, (it) => it?.bell === 1);
  assert.equal(second.feed().get().isLoaded, true);
  await until(() => second.connection.get().status === "offline");
  second.close();

  // The network is back: the service's answers replace the kept state.
  await visit("off-v2", "off1");
  phone.isOnline = true;
  const third = phone.start();
  await shows(third.notifications, (it) => it.items.length === 2);
  await shows(third.badges, (it) => it?.bell === 2);
});

test("R-VIS-NFR-1.4: without the name of the user, what is kept waits for the token", async () => {
  const { server, phone } = await leftByAda();
  let give;
  const second = phone.start({ url: server.url, user: undefined, token: () => new Promise((done) => { give = done; }) });
  assert.equal(second.badges.get(), null);
  await until(() => give);
  give(plainToken("ada"));
  await shows(second.badges, (it) => it?.messages === 3);
});

/** A token of ada with a role, which is another identity. */
function roleToken(role) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "none" })}.${part({ sub: "ada", role, exp: 9e9 })}.x`;
}

test("R-VIS-NFR-1.4: another user sees nothing of what was kept", async () => {
  const { server, phone } = await leftByAda();
  for (const user of ["ben", undefined]) {
    const ben = phone.start({ url: server.url, user, token: plainToken("ben") });
    await until(() => ben.connection.get().status !== "connecting");
    assert.equal(ben.badges.get(), null);
    ben.close();
  }
});

test("R-VIS-NFR-1.4: with other rights, what was kept goes before anything is asked for", async () => {
  const { server, phone } = await leftByAda(true);
  const seen = [];
  const guest = phone.start({ url: server.url, token: roleToken("guest") });
  guest.badges.subscribe(() => seen.push(guest.badges.get()?.messages ?? null));
  await until(() => guest.connection.get().status === "live" && seen.at(-1) === 3);
  // Kept by the former identity, closed, and fetched by the new one.
  assert.deepEqual(seen, [3, null, 3]);
  const asked = server.requests.findLast(({ place }) => place === "GET /v1/badges");
  assert.equal(asked.headers.authorization, `Bearer ${roleToken("guest")}`);
  await until(async () => (await kept(phone.storage, "kept/")).length === 2);
  guest.close();
  await server.stop();

  // Two identities of the user are known: without the service's answer neither shows.
  for (const token of [roleToken("guest"), plainToken("ada"), () => Promise.reject(new Error("no network"))]) {
    const late = phone.start({ url: server.url, token });
    await until(() => late.connection.get().status !== "connecting");
    assert.equal(late.badges.get(), null);
    late.close();
  }
});

test("R-VIS-NFR-1.4: no claim of a token is part of what is stored by name", async () => {
  const storage = memoryStorage();
  const { phone } = await leftByAda(false, storage);
  const keys = await phone.storage.keys("");
  assert.ok(keys.length >= 3);
  for (const key of keys) assert.doesNotMatch(key.replace("kept/badges", ""), /ada|sub|exp|\{/);
  const known = keys.filter((key) => key.includes(" known/"));
  assert.equal(known.length, 1);
  assert.doesNotMatch(await storage.get(known[0]), /ada/);
});

test("R-VIS-NFR-1.4: what is kept stays within its bound, and what was changed last stays", async () => {
  const answers = {};
  const server = await streamServer(answers);
  const shop = (id) => ({ body: { shopId: id, updatedAt: "2026-01-10T09:00:00.000Z", text: "x".repeat(400) } });
  for (let n = 0; n < 8; n += 1) answers[`GET /v1/shops/s${n}/queue`] = shop(`s${n}`);
  const clock = movedClock({ isStanding: true });
  const phone = device(server.url, "ada", { limits: { bytesMax: 2000 } });
  const bell = phone.start({ clock });
  for (let n = 0; n < 8; n += 1) {
    await shows(bell.queue(`s${n}`), (it) => it.status);
    clock.skip(600);
    await until(async () => (await kept(phone.storage, `s${n}"]`)).length === 1);
  }
  const keys = await kept(phone.storage, "kept/");
  assert.deepEqual(keys.map((key) => key.slice(-7)).sort(), ['["s4"]', '["s5"]', '["s6"]', '["s7"]'].map((it) => ` ${it}`));
  const texts = await Promise.all(keys.map((key) => phone.storage.get(key)));
  assert.ok(texts.join("").length <= 2000);
  await server.stop();
});

test("R-VIS-NFR-2.3: writes that wait show as waiting after a restart, and their answers confirm them", { skip }, async () => {
  const [ada, ben] = [service.token("off2"), service.token("off3")];
  const { id } = await backend("POST", "/v1/conversations", { kind: "group", memberIds: ["off2", "off3"], title: "T" });
  const phone = device(service.url, "off2", { token: ada });
  const first = phone.start();
  await shows(first.conversations, (it) => it.items.length === 1);
  const thread = first.conversation(id);
  await shows(thread, (it) => it.isLoaded);
  phone.isOnline = false;
  await until(() => first.connection.get().status === "offline");
  thread.send("one");
  thread.send("two");
  await until(async () => (await kept(phone.storage, "outbox/")).length === 2);
  await until(async () => (await kept(phone.storage, "kept/")).length === 2);
  first.close();

  const second = phone.start();
  await shows(second.conversations, (it) => it.items[0]?.lastMessage?.preview === "two");
  const again = second.conversation(id);
  assert.deepEqual(again.get().sending.map(({ text }) => text), ["one", "two"]);
  assert.equal(second.outbox.get().waiting, 2);
  again.send("three");
  phone.isOnline = true;
  await shows(again, (it) => it.messages.length === 3 && it.sending.length === 0);
  assert.deepEqual(again.get().messages.map(({ text }) => text), ["one", "two", "three"]);
  second.close();

  const reader = device(service.url, "off3", { token: ben }).start();
  await shows(reader.conversation(id), (it) => it.messages.length === 3);
});

test("R-VIS-NFR-2.3: a waiting write that the service refuses after a restart is reverted in its store", async () => {
  const post = { id: "p1", authorId: "bo", sequence: 1, likeCount: 4, repostCount: 0, liked: false, reposted: false };
  const server = await streamServer({
    "GET /v1/feed": { body: { items: [post], next: null, newest: 1 } },
    "PUT /v1/posts/p1/likes/me": { status: 403, body: { code: "post.hidden", detail: "D" } },
  });
  const phone = device(server.url, "ada");
  const first = phone.start();
  await shows(first.feed(), (it) => it.isLoaded);
  phone.isOnline = false;
  await until(() => first.connection.get().status === "offline");
  first.feed().like("p1");
  assert.equal(first.feed().get().posts[0].likeCount, 5);
  await until(async () => (await kept(phone.storage, "outbox/")).length === 1);
  first.close();
  await until(async () => (await kept(phone.storage, "kept/")).length === 1);

  const second = phone.start();
  const told = [];
  second.on("feed:refused", ({ data }) => told.push(data.problem.code));
  await shows(second.feed(), (it) => it.posts[0]?.likeCount === 5 && it.posts[0].liked);
  phone.isOnline = true;
  await until(() => told.length === 1);
  assert.deepEqual(told, ["post.hidden"]);
  assert.equal(second.feed().get().posts[0].likeCount, 4);
  second.close();
  await server.stop();
});

test("R-VIS-NFR-1.4: signing out deletes everything, after asking the app if writes wait", async () => {
  const server = await streamServer({ "GET /v1/badges": { body: counts(1, 3) } });
  const asked = [];
  let may = false;
  const phone = device(server.url, "ada", {
    mayDiscard(waiting) {
      asked.push(waiting.map(({ path }) => path));
      return may;
    },
  });
  const bell = phone.start();
  await shows(bell.badges, (it) => it?.messages === 3);
  phone.isOnline = false;
  await until(() => bell.connection.get().status === "offline");
  bell.send("PUT", "/v1/users/gus/followers/me").catch(() => {});
  await until(async () => (await kept(phone.storage, "outbox/")).length === 1);
  await until(async () => (await kept(phone.storage, "kept/")).length === 1);
  assert.equal(await bell.signOut(), null);
  assert.deepEqual(asked, [["/v1/users/gus/followers/me"]]);
  assert.equal(bell.badges.get().messages, 3);
  may = true;
  const items = await bell.signOut();
  assert.deepEqual(items.map(({ path }) => path), ["/v1/users/gus/followers/me"]);
  assert.equal(bell.badges.get(), null);
  const left = (await phone.storage.keys("bellhop 3 ")).filter((key) => !key.endsWith("cursor"));
  assert.deepEqual(left, []);
  await server.stop();
});

test("R-VIS-NFR-1.4: after a sign-out, other tabs of the user keep nothing more", async () => {
  const server = await streamServer({ "GET /v1/badges": { body: counts(1, 3) } });
  const phone = device(server.url, "ada");
  const [first, second] = [phone.start(), phone.start()];
  const writing = held(phone.storage, "set", "kept/badges []");
  const third = phone.start({ storage: writing.storage });
  for (const bell of [first, second, third]) await until(() => bell.connection.get().status === "live");
  await shows(first.badges, (it) => it?.messages === 3);
  await until(async () => (await kept(phone.storage, "kept/")).length === 1);
  await shows(third.badges, (it) => it?.messages === 3);
  writing.isHeld = true;
  server.send("badges:update", counts(2, 4));
  await until(() => writing.isWaiting);
  await first.signOut();
  // One tab begins to use a store after the sign-out, and another one was writing at that moment.
  await shows(second.badges, (it) => it);
  second.close();
  writing.release();
  await idle();
  assert.deepEqual(await kept(phone.storage, " kept"), []);
  await server.stop();
});

test("R-VIS-NFR-1.4: a state that is about to be written as the user signs out is not written", async () => {
  const server = await streamServer({ "GET /v1/badges": { body: counts(1, 3) } });
  const phone = device(server.url, "ada");
  const reading = held(phone.storage, "get", " kept");
  const bell = phone.start({ storage: reading.storage });
  await until(() => bell.connection.get().status === "live");
  reading.isHeld = true;
  await shows(bell.badges, (it) => it?.messages === 3);
  await until(() => reading.isWaiting);
  const left = bell.signOut();
  reading.release();
  await left;
  await idle();
  assert.deepEqual(await kept(phone.storage, " kept"), []);
  await server.stop();
});

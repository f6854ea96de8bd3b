// A phone that is offline, killed and started again a thousand times: what waits shows at each start, and in the end the
// phone and the service agree. CYCLES=… and SEED=… repeat a run.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { offline } from "../../../.build-js/offline.js";
import { announceSeed, seeded } from "./scripted.js";
import { binary, startService, until } from "./service.js";

const skip = !binary && "no binary: swift build";
const cycles = Number(process.env.CYCLES ?? (process.env.CI ? 1000 : 200));
let service;
if (binary) service = await startService({ flags: { "rate-limit-user": 0 } });
const tokens = service ? {
  ada: service.token("cy1", "--lifetime", "1d"), bo: service.token("cy2", "--lifetime", "1d"),
  backend: service.token("b", "--role", "service_role"),
} : {};
let phone;
after(async () => {
  phone?.kill();
  await service?.stop();
});

/** A phone whose storage outlives its apps. A killed app neither stores nor hears anything any more. */
class Phone {
  values = new Map();
  isOnline = true;
  #app = 0;
  #end = () => {};

  /** @param {string} user @param {string} token */
  constructor(user, token) {
    Object.assign(this, { user, token });
  }

  start() {
    const mine = this.#app += 1;
    const ended = new AbortController();
    const timers = new Set();
    let listener = () => {};
    const later = (use) => new Promise((done, fail) => {
      const ifAlive = (settle) => (value) => this.#app === mine && settle(value);
      if (this.#app === mine) use().then(ifAlive(done), ifAlive(fail));
    });
    let skipped = 0;
    this.bell = connect({
      url: service.url, user: this.user, transport: "fetch", tabs: "off",
      offline: offline(), token: () => this.isOnline ? this.token : Promise.reject(new Error("no network")),
      storage: {
        get: (key) => later(async () => this.values.get(key) ?? null),
        set: (key, value) => later(async () => void this.values.set(key, value)),
        remove: (key) => later(async () => void this.values.delete(key)),
        keys: (prefix) => later(async () => [...this.values.keys()].filter((key) => key.startsWith(prefix)).sort()),
      },
      fetch: (url, { signal, ...how }) => later(() => this.isOnline
        ? fetch(url, { ...how, signal: AbortSignal.any([signal, ended.signal]) }) : Promise.reject(new TypeError("no network"))),
      network: { online: () => this.isOnline, listen: (given) => { listener = given; return () => {}; } },
      clock: {
        now: () => Date.now() + skipped, random: Math.random,
        after: (ms, run) => {
          if (this.#app !== mine) return () => {};
          const timer = { at: Date.now() + skipped + ms, run, handle: setTimeout(() => fire(timer), ms) };
          timers.add(timer);
          return () => stop(timer);
        },
      },
    });
    const stop = (timer) => {
      clearTimeout(timer.handle);
      timers.delete(timer);
    };
    const fire = (timer) => {
      stop(timer);
      timer.run();
    };
    this.turn = (isOnline) => {
      this.isOnline = isOnline;
      listener({ online: isOnline });
    };
    /** Moves the clock, so that what waits to be written is. */
    this.skip = (ms) => {
      skipped += ms;
      for (const timer of [...timers]) if (timer.at <= Date.now() + skipped) fire(timer);
    };
    this.#end = () => {
      ended.abort();
      [...timers].forEach(stop);
    };
    return this.bell;
  }

  kill() {
    this.#app += 1;
    this.#end();
  }

  waiting() {
    const keys = [...this.values.keys()].filter((key) => key.includes(" outbox/")).sort();
    return keys.map((key) => JSON.parse(this.values.get(key)));
  }
}

/** Calls the service as one of its users, or as its backend. */
async function call(who, method, path, body) {
  const answer = await fetch(`${service.url}${path}`, {
    method, body: body && JSON.stringify(body),
    headers: { Authorization: `Bearer ${tokens[who]}`, "Content-Type": "application/json" },
  });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
  return answer.status === 204 ? null : answer.json();
}

/** Makes a conversation, posts and notifications; returns the ids of the posts. */
async function prepare() {
  await call("backend", "POST", "/v1/conversations", { id: "cy", kind: "group", memberIds: ["cy1", "cy2"], title: "T" });
  await call("ada", "PUT", "/v1/users/cy2/followers/me");
  const posts = [];
  for (let n = 0; n < 5; n += 1) {
    await call("backend", "POST", "/v1/events", { id: `cy-${n}`, type: "auth.signup", userId: "cy1", data: {} });
    posts.push((await call("bo", "POST", "/v1/posts", { text: `post ${n}`, visibility: "public" })).id);
  }
  return posts;
}

/** Waits until everything is loaded and sent. */
async function online(bell) {
  const stores = [bell.conversation("cy"), bell.feed(), bell.notifications];
  await until(() => stores.every((store) => store.get().isLoaded));
  await until(() => bell.outbox.get().waiting === 0 && phone.waiting().length === 0);
}

/** Checks that a start without a network shows what waited before it, in order; returns the number of messages. */
async function showsWaiting(bell, before) {
  const thread = bell.conversation("cy");
  // A phone that was killed before anything was kept shows nothing but what waits.
  const isKept = [...phone.values.keys()].some((key) => key.includes("kept/conversation "));
  await until(() => bell.connection.get().status === "offline" && thread.get().isLoaded === isKept);
  await until(() => bell.outbox.get().waiting === before.length);
  // A message whose event came before its answer is no longer waiting.
  const isShown = ({ id }) => thread.get().messages.some((one) => one.id === id);
  const texts = before.filter(({ body }) => body?.text && !isShown(body)).map(({ body }) => body.text);
  await until(() => thread.get().sending.length === texts.length, `${texts.length} messages wait`);
  assert.deepEqual(thread.get().sending.map(({ text }) => text), texts);
  return texts.length;
}

/** Writes as a user does: messages, a like, a notification that is seen. Returns the number of writes. */
function write(bell, { chance, posts, sent, wanted }) {
  const roll = (share) => chance() < share;
  const { notifications } = bell;
  const feed = bell.feed();
  const texts = Array.from({ length: Math.floor(chance() * 3) }, (_, n) => `${sent.length + n}`);
  sent.push(...texts);
  for (const text of texts) bell.conversation("cy").send(text);
  let made = texts.length;
  const post = feed.get().posts.find(({ id }) => id === posts[Math.floor(chance() * posts.length)]);
  if (post && roll(0.3)) {
    wanted.likes[post.id] = !post.liked;
    post.liked ? feed.unlike(post.id) : feed.like(post.id);
    made += 1;
  }
  const item = notifications.get().items[Math.floor(chance() * 5)];
  if (item && roll(0.3)) {
    wanted.seen[item.id] = !item.seenAt;
    item.seenAt ? notifications.markUnseen(item.id) : notifications.markSeen(item.id);
    made += 1;
  }
  return made;
}

/** One start of the app, until it is killed. Returns the number of messages that it showed as waiting. */
async function cycle(world, isFirst) {
  const roll = (share) => world.chance() < share;
  // Mostly a start without a network, as in a lift.
  phone.isOnline = isFirst || roll(0.15);
  const before = phone.waiting();
  const bell = phone.start();
  const answered = [];
  bell.on("outbox:sent", ({ data }) => answered.push(data.key));
  let shownCount = 0;
  if (!phone.isOnline) shownCount = await showsWaiting(bell, before);
  else if (isFirst || roll(0.5)) await online(bell);
  const made = write(bell, world);
  // A write counts once it is stored, or answered.
  await until(() => {
    const keys = new Set([...answered, ...phone.waiting().map(({ key }) => key)]);
    return [...keys].filter((key) => !before.some((one) => one.key === key)).length === made;
  });
  if (roll(0.3)) phone.turn(!phone.isOnline);
  if (roll(0.5)) phone.skip(600);
  if (roll(0.3)) await new Promise((done) => setImmediate(done));
  phone.kill();
  return shownCount;
}

/** Checks that the service has done each write once, in order, and that the phone shows the service's state. */
async function check(bell, { sent, wanted }) {
  const done = [];
  for (let since = 0, page; !page || page.items.length; since = page.items.at(-1)?.sequence) {
    page = await call("bo", "GET", `/v1/conversations/cy/messages?since=${since}&limit=100`);
    done.push(...page.items.map(({ text }) => text));
  }
  assert.deepEqual(done, sent);
  const thread = bell.conversation("cy");
  const latest = JSON.stringify(done.slice(-50));
  await until(() => JSON.stringify(thread.get().messages.slice(-50).map(({ text }) => text)) === latest);
  assert.deepEqual(thread.get().sending, []);
  const { items } = await call("ada", "GET", "/v1/feed");
  await until(() => bell.feed().get().posts.every((post) =>
    items.some(({ id, liked, likeCount }) => id === post.id && liked === post.liked && likeCount === post.likeCount)));
  for (const [id, liked] of Object.entries(wanted.likes)) assert.equal(items.find((one) => one.id === id).liked, liked);
  const list = await call("ada", "GET", "/v1/notifications");
  for (const [id, seen] of Object.entries(wanted.seen)) {
    assert.equal(Boolean(list.items.find((one) => one.id === id).seenAt), seen);
  }
  const badges = await call("ada", "GET", "/v1/badges");
  await until(() => bell.badges.get()?.total === badges.total);
}

test("R-VIS-NFR-2.3: cycles of offline, kill and reload with writes converge", { skip, timeout: 900_000 }, async () => {
  const world = { chance: seeded(announceSeed("converge")), posts: await prepare(), sent: [], wanted: { likes: {}, seen: {} } };
  phone = new Phone("cy1", tokens.ada);
  let shownCount = 0;
  for (let number = 0; number < cycles; number += 1) shownCount += await cycle(world, number === 0);
  phone.isOnline = true;
  const bell = phone.start();
  await online(bell);
  await check(bell, world);
  bell.close();
  console.log(`converge: ${cycles} cycles, ${world.sent.length} messages, ${shownCount} shown as waiting after a start`);
});

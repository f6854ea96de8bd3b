// The core with optional parts, and the files that the service serves, against the real service.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { backgroundMs } from "../../../.build-js/adapters/browser.js";
import { connect } from "../../../.build-js/core.js";
import * as features from "../../../.build-js/features.js";
import { connect as connectAll } from "../../../.build-js/index.js";
import { memoryStorage } from "../../../.build-js/storage/memory.js";
import { tables } from "../../../.build-js/stores/tables.js";
import { binary, startService, until } from "./service.js";

const options = { skip: binary ? false : "no binary of the service: set BELLHOP_BIN" };
const bells = [];
let service;

before(async () => {
  if (binary) service = await startService();
});
afterEach(() => {
  for (const bell of bells.splice(0)) bell.close();
});
after(() => service?.stop());

/** Records the paths that a bell calls. */
function watched() {
  const paths = [];
  return { paths, fetch: (url, init) => {
    paths.push(new URL(url).pathname);
    return fetch(url, init);
  } };
}

async function live(make, user, more = {}) {
  const bell = make({ url: service.url, token: service.token(user), storage: memoryStorage(), ...more });
  bells.push(bell);
  await until(() => bell.connection.get().status === "live");
  return bell;
}

test("the core has the given features under their names", options, async () => {
  const bell = await live(connect, "ada", { features: { counts: features.badges, queue: features.queue } });
  await until(() => bell.counts.get()?.bell === 0);
  assert.equal(bell.queue("s1"), bell.queue("s1"));
  assert.equal(bell.notifications, undefined);
  assert.equal((await bell.send("PUT", "/v1/preferences", { sound: false })).status, 200);
});

test("counts are fetched only by pages that show them", options, async () => {
  const quiet = watched();
  await live(connectAll, "quiet", { fetch: quiet.fetch });
  const curious = watched();
  const bell = await live(connectAll, "curious", { fetch: curious.fetch, limits: { polling: { leastMs: 10 } } });
  bell.badges.get();
  await until(() => curious.paths.includes("/v1/badges"));
  assert.ok([200, 304].includes((await bell.badges.refresh()).status));
  assert.equal(quiet.paths.includes("/v1/badges"), false);
});

test("R-VIS-NFR-3.3: the token is stored nowhere", options, async () => {
  const storage = memoryStorage();
  const token = service.token("careful");
  const bell = await live(connectAll, "careful", { token, storage });
  await bell.send("PUT", "/v1/preferences", { sound: false });
  await until(async () => (await storage.keys("")).some((key) => key.endsWith("cursor")));
  const stored = await Promise.all((await storage.keys("")).map(async (key) => key + await storage.get(key)));
  // Neither its signature nor its claims are stored.
  for (const part of token.split(".")) assert.ok(!stored.some((text) => text.includes(part)), stored.join());
});

test("index.js exports every feature", options, async () => {
  const bell = await live(connectAll, "ada");
  for (const name of Object.keys(features)) assert.ok(bell[name], name);
});

test("the served modules work together, and load each module once", options, async (t) => {
  // Node needs a package.json to treat files as modules; browsers do not.
  const served = mkdtempSync(join(tmpdir(), "bellhop-served-"));
  t.after(() => rmSync(served, { recursive: true }));
  cpSync(new URL("../../Service/Features/ClientLibrary/Files/", import.meta.url), served, { recursive: true });
  writeFileSync(join(served, "package.json"), JSON.stringify({ type: "module" }));
  const core = await import(join(served, "bellhop-core.js"));
  const parts = await import(join(served, "bellhop-features.js"));
  const { tabs } = await import(join(served, "bellhop-tabs.js"));
  assert.deepEqual(Object.keys(parts).sort(), Object.keys(features).sort());
  const { offline } = await import(join(served, "bellhop-offline.js"));
  const { push } = await import(join(served, "bellhop-push.js"));
  const { badges, notifications } = parts;
  const bell = await live(core.connect, "ben", { tabs, offline: offline(), features: { badges, notifications, push } });
  assert.equal(bell.push.get().status, "unsupported");
  await until(() => bell.badges.get()?.total === 0 && bell.notifications.get().isLoaded);
  const all = await import(join(served, "bellhop.js"));
  assert.ok((await live(all.connect, "ben")).feed().get());
});

test("an invalid feature, or a name in use, is refused", () => {
  const given = { url: "http://127.0.0.1:9", token: "t" };
  assert.throws(() => connect({ ...given, features: { nothing: {} } }), /"nothing" is no feature/);
  assert.throws(() => connect({ ...given, features: { send: features.badges } }), /"send" is no feature/);
  assert.throws(() => connect({ ...given, tabs: "auto" }), /tabs is that of bellhop.js\/tabs/);
});

test("R-SCH-SC-003, R-SCH-SC-005: on phones a stream pauses in the background by default", () => {
  assert.equal(backgroundMs({ product: "ReactNative" }), 30_000);
  assert.equal(backgroundMs({ userAgent: "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Mobile/15E148" }), 30_000);
  assert.equal(backgroundMs({ userAgent: "Mozilla/5.0 (Linux; Android 15; Tablet) Chrome/130.0 Safari/537.36" }), 30_000);
  assert.equal(backgroundMs({ userAgent: "Mozilla/5.0 (X11; Linux x86_64) Chrome/130.0 Safari/537.36" }), null);
});

test("replaced and removed tables are answered, as in the Swift client", async () => {
  const subscriptions = tables.subscriptions("tab", () => {});
  const [one, other] = [{}, {}];
  const filter = { tables: [{ id: "t", table: "tasks" }] };
  const first = subscriptions.set(one, filter);
  const others = subscriptions.set(other, filter);
  const second = subscriptions.set(one, filter);
  assert.deepEqual(await first, { status: 0, headers: {}, body: { code: "tables.superseded" } });
  subscriptions.answered({ status: 200, body: null, refused: {} });
  assert.equal((await second).status, 200);
  assert.equal((await others).status, 200);
  const third = subscriptions.set(one, filter);
  subscriptions.set(one, null);
  assert.equal((await third).body.code, "tables.superseded");
});

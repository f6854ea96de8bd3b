// Push registration of a native app. Browsers are tested in Tests/browser/push.py.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { push } from "../../../.build-js/push.js";
import { memoryStorage } from "../../../.build-js/storage/memory.js";
import { movedClock } from "./clock.js";
import { plainToken } from "./modules.js";
import { until } from "./service.js";
import { streamServer } from "./stream.js";

const bells = [];
after(() => bells.forEach((bell) => bell.close()));
const start = (server, { user = "ada", ...options } = {}) => {
  const bell = connect({
    url: server.url, user, token: plainToken(user), transport: "fetch", tabs: "off", features: { push }, ...options,
  });
  bells.push(bell);
  return bell;
};
const token = { platform: "fcm", token: "bk3RNwTe3H0" };
const devices = ({ requests }) => requests.filter(({ place }) => place.includes("/v1/devices/"));

/** A service that takes any device. */
async function serverOfDevices() {
  const answers = {};
  const server = await streamServer(new Proxy(answers, {
    get: (known, place) => known[place] ?? (/^(PUT|DELETE) \/v1\/devices\//.test(place) ? { status: 200, body: {} } : undefined),
  }));
  return { server, answers };
}

test("R-27: a token is registered under the same id at each start, and tested", async () => {
  const { server, answers } = await serverOfDevices();
  const storage = memoryStorage();
  const first = start(server, { storage });
  assert.equal(first.push.get().status, "unsupported");
  assert.equal((await first.push.register(token)).status, "on");
  const { deviceId } = first.push.get();
  answers[`POST /v1/devices/${deviceId}/test`] = { status: 202, body: {} };
  assert.equal((await first.push.test()).status, 202);
  first.close();
  const second = start(server, { storage });
  assert.equal((await second.push.register({ ...token, token: "other" })).status, "on");
  const put = devices(server).filter(({ place }) => place.startsWith("PUT"));
  assert.deepEqual(put.map(({ place, body }) => [place, body.token]),
    [[`PUT /v1/devices/${deviceId}`, "bk3RNwTe3H0"], [`PUT /v1/devices/${deviceId}`, "other"]]);
  // R-VIS-NFR-3.3: the token itself stays with the platform.
  const texts = await Promise.all((await storage.keys("")).map((key) => storage.get(key)));
  assert.ok(!texts.join().includes("bk3RNwTe3H0"));
  await server.stop();
});

test("R-27: signing out removes the device by the token of the user who leaves, and does not wait for it for long", async () => {
  const { server, answers } = await serverOfDevices();
  const ada = plainToken("ada");
  const bell = start(server, { token: ada });
  await bell.push.register(token);
  await bell.signOut();
  const removed = devices(server).filter(({ place }) => place.startsWith("DELETE"));
  assert.deepEqual(removed.map(({ headers }) => headers.authorization), [`Bearer ${ada}`]);
  assert.equal(bell.push.get().status, "off");

  bell.signIn("ada");
  const { deviceId } = await bell.push.register(token);
  answers[`DELETE /v1/devices/${deviceId}`] = () => new Promise(() => {});
  const clock = movedClock();
  const slow = start(server, { clock });
  const { deviceId: other } = await slow.push.register(token);
  answers[`DELETE /v1/devices/${other}`] = () => new Promise(() => {});
  const left = slow.signOut();
  await until(() => devices(server).some(({ place }) => place === `DELETE /v1/devices/${other}`));
  clock.skip(3000);
  assert.deepEqual(await left, []);
  await server.stop();
});

test("R-27: signing out removes the device that an earlier start has registered", async () => {
  const { server } = await serverOfDevices();
  const storage = memoryStorage();
  const first = start(server, { storage });
  const { deviceId } = await first.push.register(token);
  first.close();
  const second = start(server, { storage });
  await until(() => second.connection.get().status === "live");
  await second.signOut();
  assert.equal(devices(server).at(-1).place, `DELETE /v1/devices/${deviceId}`);

  // Without a registered device there is nothing to remove.
  const count = devices(server).length;
  const other = start(server);
  await until(() => other.connection.get().status === "live");
  await other.signOut();
  assert.equal(devices(server).length, count);
  await server.stop();
});

test("R-27: another user is not registered by the choice of the one before", async () => {
  const { server } = await serverOfDevices();
  let user = "ada";
  const bell = start(server, { token: () => plainToken(user) });
  await bell.push.register(token);
  user = "ben";
  bell.signIn("ben");
  await until(() => bell.connection.get().status !== "connecting" && bell.user === "ben");
  assert.equal(bell.push.get().status, "off");
  assert.equal(devices(server).length, 1);
  await server.stop();
});

test("R-27: a service without push messages, and wrong tokens, are told", async () => {
  const server = await streamServer({});
  const bell = start(server);
  assert.equal((await bell.push.register(token)).status, "refused");
  assert.equal(bell.push.get().problem.status, 404);
  await assert.rejects(bell.push.register({ platform: "webpush", token: "t" }), TypeError);
  await assert.rejects(bell.push.register({ platform: "fcm" }), TypeError);
  assert.equal(await bell.push.test(), null);
  assert.equal((await bell.push.enable()).status, "unsupported");
  await server.stop();
});

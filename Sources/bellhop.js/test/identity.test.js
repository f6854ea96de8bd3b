// A bell over the tokens of real issuers, whose claims change in ways that the service does not read
// (Tests/Fixtures/Identity/issuers.json). The service's digest decides: the same person keeps everything, other rights
// start with empty stores.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { offline } from "../../../.build-js/offline.js";
import { push } from "../../../.build-js/push.js";
import { memoryStorage } from "../../../.build-js/storage/memory.js";
import { movedClock } from "./clock.js";
import { until } from "./service.js";
import { streamServer } from "./stream.js";

const { issuers } = JSON.parse(readFileSync(new URL("../../../Tests/Fixtures/Identity/issuers.json", import.meta.url)));
const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const tokenOf = (payload) => `${part({ alg: "none" })}.${part(payload)}.x`;
const counts = (messages) =>
  ({ messages, requests: 0, bell: 0, total: messages, version: 1, epoch: "e", asOf: "2026-01-01T00:00:00.000Z" });

/** A bell with a stream, counts, a registered device and an event behind it. */
async function start({ payload, identity, tokens }) {
  const digests = new Map([[tokenOf(payload), identity], ...tokens.map((one) => [tokenOf(one.payload), one.identity])]);
  const it = { token: tokenOf(payload), isFull: false, written: [], inputs: [] };
  it.server = await streamServer({
    "GET /v1/badges": { body: counts(3) },
    "PUT /v1/devices/*": { body: {} },
    "PUT /v1/streams/*/token": { body: { expiresAt: "2026-01-01T00:00:00.000Z" } },
    "POST /v1/w": (body, { headers }) => {
      if (it.isFull) return { status: 503, body: { code: "busy" } };
      it.written.push({ ...body, by: digests.get(headers.authorization.slice(7)) });
      return { status: 201, body: {} };
    },
  }, (token) => digests.get(token));
  it.clock = movedClock({ isStanding: true });
  it.storage = memoryStorage();
  it.bell = connect({
    url: it.server.url, token: () => it.token, clock: it.clock, storage: it.storage, offline: offline(), transport: "fetch",
    features: { ...(await import("../../../.build-js/features.js")), push },
  });
  it.bell.attach({ receive: (input) => input.type === "user" && it.inputs.push(input) });
  await until(() => it.bell.connection.get().status === "live" && it.bell.badges.get()?.messages === 3);
  return it;
}

const cursors = async (it) => Object.fromEntries(await Promise.all((await it.storage.keys("bellhop 3 "))
  .filter((key) => key.endsWith(" cursor")).map(async (key) => [key.split(" ").at(-2), await it.storage.get(key)])));

for (const issuer of issuers) {
  test(`R-SCH-FR-001: same rights keep the session, other rights begin another (${issuer.issuer})`, async () => {
    const it = await start(issuer);
    const { bell, server, clock } = it;
    let n = 0;
    const event = () => server.streams.forEach((stream) => stream.write(`id: e-${(n += 1)}\nevent: test\ndata: 1\n\n`));
    event();
    const registers = async () => {
      await bell.push.register({ platform: "fcm", token: "device-token" });
      assert.equal(bell.push.get().status, "on");
    };
    await registers();
    await until(async () => (await cursors(it))[issuer.identity] === `e-${n}`);

    for (const one of issuer.tokens) {
      const isSame = one.identity === issuer.identity;
      const { streamId } = bell.connection.get();
      it.inputs.length = 0;
      it.isFull = true;
      const write = bell.send("POST", "/v1/w", { case: one.case }).catch(({ code }) => code);
      await until(() => server.requests.at(-1).place === "POST /v1/w");
      it.token = tokenOf(one.payload);
      clock.skip(11_000);
      server.send("stream:expiring", { expiresAt: "" });
      if (isSame) {
        await until(() => server.requests.some(({ place, body }) =>
          place === `PUT /v1/streams/${streamId}/token` && body.token === it.token));
        it.isFull = false;
        await until(() => { clock.skip(1000); return it.written.some((body) => body.case === one.case); });
        assert.equal((await write).status, 201, one.case);
        assert.equal(bell.connection.get().streamId, streamId, one.case);
        assert.deepEqual(it.inputs, [], one.case);
        assert.equal(bell.badges.get().messages, 3);
        assert.equal(bell.push.get().status, "on", one.case);
      } else {
        await until(() => bell.connection.get().status === "live" && bell.connection.get().streamId !== streamId);
        assert.equal(await write, "outbox.signed_out", one.case);
        assert.ok(it.inputs.length > 0, one.case);
        assert.equal(bell.push.get().status, "off", one.case);
        const opened = server.requests.findLast(({ place }) => place === "GET /v1/stream").headers;
        assert.equal(opened.authorization, `Bearer ${it.token}`);
        assert.equal(opened["last-event-id"], undefined, one.case);
        it.isFull = false;
        // Back to the first rights: the stream resumes, and only now the write is sent.
        const before = bell.connection.get().streamId;
        it.token = tokenOf(issuer.payload);
        clock.skip(11_000);
        server.send("stream:expiring", { expiresAt: "" });
        await until(() => bell.connection.get().status === "live" && bell.connection.get().streamId !== before);
        await until(() => { clock.skip(1000); return it.written.some((body) => body.case === one.case); });
        const resumed = server.requests.findLast(({ place }) => place === "GET /v1/stream").headers;
        assert.equal(resumed["last-event-id"], `e-${n}`, one.case);
        await registers();
      }
      assert.deepEqual(it.written.filter((body) => body.case === one.case), [{ case: one.case, by: issuer.identity }]);
    }
    const keys = await it.storage.keys("");
    for (const key of keys) assert.ok(!key.includes(issuer.payload.sub), key);
    bell.close();
    await server.stop();
  });
}

// Some issuers have the stable id of a user in another claim than sub, and the service's settings name it.
test("R-SCH-FR-001: the user is the one that the service names, not the token's sub", async () => {
  const token = tokenOf({ iss: "i", sub: "pairwise", oid: "o-ada", iat: 1, exp: 4_102_444_800 });
  const server = await streamServer({ "GET /v1/me": { body: { identity: "digest", userId: "o-ada" } } }, () => "digest");
  const storage = memoryStorage();
  for (const user of [undefined, "o-ada"]) {
    let tokens = 0;
    const bell = connect({ url: server.url, user, token: () => { tokens += 1; return token; }, storage, transport: "fetch" });
    await until(() => bell.connection.get().status === "live");
    assert.equal(bell.user, "o-ada");
    assert.equal(tokens, 1);
    bell.close();
  }
  await server.stop();
});

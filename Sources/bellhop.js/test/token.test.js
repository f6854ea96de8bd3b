// What an app sees of its tokens: a token() that fails, a service that refuses, clocks that are wrong.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { memoryStorage } from "../../../.build-js/storage/memory.js";
import { systemClock } from "../../../.build-js/stores/store.js";
import { json, ready, scriptedServer, streamHead } from "./scripted.js";
import { until } from "./service.js";

const open = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
/** A token as a service whose clock is right signs it. */
const tokenAt = (ms, more = {}) =>
  `${part({ alg: "none" })}.${part({ sub: "ada", iat: Math.floor(ms / 1000), exp: Math.floor(ms / 1000) + 300, ...more })}.x`;

/** A service that refuses expired tokens by its own clock. */
async function serve(answer = () => false) {
  const expired = { type: "about:blank", code: "invalid_token.expired", detail: "The token has expired." };
  const isOver = ({ headers }) =>
    JSON.parse(Buffer.from(headers.authorization.split(".")[1] ?? "", "base64url")).exp * 1000 <= Date.now();
  const server = await scriptedServer((request, socket) => {
    if (answer(request, socket) !== false) return;
    if (!request.headers.authorization) return json(socket, 401, { code: "unauthenticated" });
    if (isOver(request)) return json(socket, 401, expired);
    if (request.path === "/v1/me") return json(socket, 200, { identity: "identity-of-ada-123456" });
    if (request.path.startsWith("/v1/stream")) return socket.write(streamHead + ready("s1"));
    return json(socket, 200, {});
  }, null);
  open.push(server.stop);
  return server;
}

function ring(server, options) {
  const asked = [];
  const { token = () => tokenAt(Date.now()), ...more } = options;
  const bell = connect({
    url: server.url, user: "ada", storage: memoryStorage(), features: {}, limits: { firstMs: 20, delayMsMax: 50 }, ...more,
    token: (request) => {
      asked.push(request.fresh);
      return token(request);
    },
  });
  open.push(() => bell.close());
  return { bell, asked };
}

const providers = [
  ["throws", () => { throw new Error("the session is over"); }, { code: "token.failed", detail: "Error: the session is over" }],
  ["rejects with a code of its own", () => Promise.reject(Object.assign(new Error("offline"), { code: "auth/network" })),
    { code: "token.failed", detail: "Error: offline" }],
  ["rejects with nothing", () => Promise.reject(), { code: "token.failed", detail: "undefined" }],
  ["returns null", () => null, { code: "token.none" }],
  ["returns nothing", () => {}, { code: "token.none" }],
  ["returns an empty text", () => "", { code: "token.none" }],
  ["returns an object", () => ({ access_token: "t" }), { code: "token.wrong" }],
  ["returns a text with a line break", () => "a.b.c\n", { code: "token.wrong" }],
  ["returns an expired token", () => tokenAt(Date.now() - 86_400_000),
    { code: "token.expired", detail: "The token has expired." }],
];

test("R-SCH-NFR-004: without a token there is no call, and the app reads why", async () => {
  for (const [what, token, problem] of providers) {
    const server = await serve();
    const { bell } = ring(server, { token });
    const found = await until(() => bell.connection.get().reason);
    assert.equal(found.code, problem.code, what);
    if (problem.detail) assert.equal(found.detail, problem.detail, what);
    if (problem.code === "token.expired") assert.equal((await bell.get("/v1/badges")).body.code, "invalid_token.expired");
    else await assert.rejects(bell.get("/v1/badges"), { code: problem.code }, what);
    const calls = server.requests.filter(({ path }) => path !== "/v1/me");
    assert.deepEqual(calls, [], what);
    bell.close();
  }
});

test("R-SCH-NFR-004: a call with an expired token asks the app once more, and no third time", async () => {
  const server = await serve();
  const { bell, asked } = ring(server, { token: () => tokenAt(Date.now() - 86_400_000), limits: { firstMs: 1e6, delayMsMax: 1e6 } });
  await until(() => bell.connection.get().reason);
  // Once for the session's begin, and once for its stream.
  assert.deepEqual(asked, [false, true, false, true]);
  await bell.get("/v1/badges");
  assert.deepEqual(asked, [false, true, false, true, false, true]);
});

for (const [name, off] of [["a day behind", -86_400_000], ["an hour behind", -3_600_000], ["an hour ahead", 3_600_000],
  ["a day ahead", 86_400_000]]) {
  test(`R-SCH-FR-002: a device whose clock is ${name} connects, and asks for one token`, async () => {
    const server = await serve();
    const clock = { ...systemClock, now: () => Date.now() + off };
    const { bell, asked } = ring(server, { clock });
    await until(() => bell.connection.get().status === "live");
    assert.equal((await bell.get("/v1/badges")).status, 200);
    assert.deepEqual(asked, [false]);
  });
}

test("R-SCH-FR-001: a token is shown to GET /v1/me before anything else, and another with the same claims is not", async () => {
  const server = await serve();
  let times = 0;
  let role = "a";
  const { bell } = ring(server, { token: () => tokenAt(Date.now() + (times += 1) * 1000, { jti: `j${times}`, role }) });
  await until(() => bell.connection.get().status === "live");
  const asked = () => server.requests.filter(({ path }) => path === "/v1/me").length;
  assert.equal(server.requests[0].path, "/v1/me");
  assert.equal(asked(), 1);
  bell.signIn("ada");
  await until(() => bell.connection.get().status === "live");
  assert.equal(asked(), 1);
  role = "b";
  bell.signIn("ada");
  await until(() => asked() === 2);
});

test("R-SCH-FR-001: while the service cannot say whose a token is, its answer is that of the call", async () => {
  const server = await serve((request, socket) => request.path === "/v1/me" &&
    json(socket, 503, { code: "keys.unavailable" }, { "retry-after": "7" }));
  const { bell } = ring(server, {});
  const answer = await bell.get("/v1/badges");
  assert.equal(answer.status, 503);
  assert.equal(answer.retryAfterMs, 7000);
  assert.ok(server.requests.every(({ path }) => path === "/v1/me"));
});

test("R-SCH-FR-001: a service that opens a stream of another identity is asked again, and the session begins anew", async () => {
  let identity = "identity-of-old-rights";
  const server = await serve((request, socket) => {
    if (request.path === "/v1/me") return json(socket, 200, { identity });
    if (!request.path.startsWith("/v1/stream")) return false;
    identity = "identity-of-new-rights";
    const data = JSON.stringify({ streamId: "s1", identity, topics: ["personal"], replayed: 0 });
    socket.write(`${streamHead}event: stream:ready\ndata: ${data}\n\n`);
  });
  const storage = memoryStorage();
  const { bell } = ring(server, { storage });
  const inputs = [];
  bell.attach({ receive: (input) => input.type === "user" && inputs.push(input.signedIn) });
  await until(() => bell.connection.get().status === "live");
  assert.deepEqual(inputs, [true]);
  assert.equal(server.requests.filter(({ path }) => path === "/v1/me").length, 2);
});

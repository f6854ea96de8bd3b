// Stores of feature sets that a service does not have.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "../../../.build-js/index.js";
import { memoryStorage } from "../../../.build-js/storage/memory.js";
import { binary, startService, until } from "./service.js";

const options = { skip: binary ? false : "no binary of the service: set BELLHOP_BIN" };
let service;
before(async () => {
  if (binary) service = await startService({ flags: { "rate-limit-user": 0, features: "bell,publish" } });
});
after(() => service?.stop());

const isOff = (store) => store.get().problem?.code === "feature.off";

/** Opens a bell whose requests are counted by method and path. */
function ring(user) {
  const asked = new Map();
  const counting = (url, init) => {
    const name = `${init?.method ?? "GET"} ${new URL(url).pathname}`;
    asked.set(name, (asked.get(name) ?? 0) + 1);
    return fetch(url, init);
  };
  const bell = connect({
    url: service.url, token: service.token(user), storage: memoryStorage(), fetch: counting,
    limits: { firstMs: 20, delayMsMax: 200, triesMax: 1000, outbox: { firstMs: 5, delayMsMax: 50 } },
  });
  return { bell, asked };
}

test("stores of sets that are off say so, and ask once for each stream; the others work", options, async () => {
  const { bell, asked } = ring("ada");
  const off = [
    bell.conversations, bell.conversation("c1"), bell.requests(), bell.feed(), bell.booking("b1"), bell.queue("s1"),
    bell.dj("s1"), bell.leaderboard("c1"),
  ];
  const items = bell.notifications;
  const offs = [...off, items].map((store) => store.subscribe(() => {}));
  await until(() => off.every(isOff), "all are off");
  await until(() => bell.connection.get().status === "live", "the stream is live without the topics that are off");
  const before = new Map(asked);
  for (const store of off) store.refresh?.();
  // What is on works meanwhile; when its event has come, each refresh would have asked.
  const headers = {
    Authorization: `Bearer ${service.token("backend", "--role", "service_role")}`, "Content-Type": "application/json",
  };
  const body = JSON.stringify({ id: "e1", type: "auth.signup", userId: "ada", data: {} });
  await fetch(`${service.url}/v1/events`, { method: "POST", headers, body });
  await until(() => items.get().items.length === 1, "the notification");
  for (const [name, count] of asked) {
    if (/conversations|requests|feed|bookings|shops|challenges/.test(name)) assert.equal(count, before.get(name), name);
  }
  for (const one of offs) one();
  bell.close();
});

test("a waiting write to a set that is off is refused and told once", options, async () => {
  const { bell, asked } = ring("ben");
  const outcome = await bell.send("POST", "/v1/conversations/c1/messages", { text: "hello" }).catch((error) => error);
  assert.match(JSON.stringify(outcome), /feature\.off/);
  await until(() => bell.outbox.get().waiting === 0, "nothing waits");
  assert.equal(asked.get("POST /v1/conversations/c1/messages"), 1);
  bell.close();
});

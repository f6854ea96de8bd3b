// What the vectors do not show of the list machine, because the lists of the contract are long: its bounds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { merged, takeMore } from "../../../.build-js/machines/list.js";

const list = {
  as: "list", path: "/v1/things", more: "more", key: "id", order: "place", storedMax: 2, keptMax: 2, events: {},
};
const items = (...places) => places.map((place) => ({ id: `i${place}`, place }));
const ids = (all) => all.map(({ id }) => id).join(" ");
const answer = (places, next) => ({ type: "answer", as: "more", status: 200, body: { items: items(...places), next } });

test("a list keeps the items that come first in its order", () => {
  assert.equal(ids(merged(list, items(3, 1), items(2))), "i3 i2");
  assert.equal(ids(merged({ ...list, isAscending: true }, items(1, 3), items(2))), "i2 i3");
  assert.equal(ids(merged(list, items(3, 1), items(2), 3)), "i3 i2 i1");
});

test("a full list has no further page", () => {
  const state = { stored: items(3), next: "n1", loading: {} };
  assert.equal(takeMore({ ...list, storedMax: 3 }, state, answer([2], "n2")).next, "n2");
  const full = takeMore(list, state, answer([2], "n2"));
  assert.deepEqual([ids(full.stored), full.next], ["i3 i2", null]);
});

// Every machine against the vectors that the Swift tests run too: Tests/Fixtures/Client/<machine>.json.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const folder = new URL("../../../Tests/Fixtures/Client/", import.meta.url);

/** Asserts that all expected members exist. Lists must have equal length; objects may have more members unless
 * empty. */
function assertHas(actual, expected, place) {
  if (expected === null || typeof expected !== "object") return assert.strictEqual(actual, expected, place);
  if (Array.isArray(expected)) {
    assert.ok(Array.isArray(actual), `${place} is no list: ${JSON.stringify(actual)}`);
    assert.strictEqual(actual.length, expected.length, `${place}: ${JSON.stringify(actual)}`);
    return expected.forEach((one, index) => assertHas(actual[index], one, `${place}[${index}]`));
  }
  assert.ok(actual !== null && typeof actual === "object", `${place} is ${actual}`);
  if (Object.keys(expected).length === 0) return assert.deepEqual(actual, {}, place);
  for (const name of Object.keys(expected)) assertHas(actual[name], expected[name], `${place}.${name}`);
}

/** Freezes a machine's input, so that changing it fails. */
function frozen(value) {
  if (value !== null && typeof value === "object" && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(frozen);
  }
  return value;
}

for (const file of readdirSync(folder).filter((name) => name.endsWith(".json")).sort()) {
  const { machine: name, cases } = JSON.parse(readFileSync(new URL(file, folder), "utf8"));
  for (const one of cases) {
    // Cases of what all stores have in common name their machine.
    const machine = await import(`../../../.build-js/machines/${one.machine ?? name}.js`);
    test(`${one.row}: ${one.name}`, () => {
      let state = frozen(machine.initial(one.options ?? {}));
      one.steps.forEach((step, index) => {
        const result = machine.receive(state, frozen({ now: 0, random: 0, ...step.input }));
        const place = `${name}, step ${index + 1}`;
        const actions = JSON.parse(JSON.stringify(result.actions));
        if (step.actions) assert.deepEqual(actions, step.actions, `${place}: actions`);
        if (step.state) assertHas(result.state, step.state, `${place}: state`);
        if ("kept" in step) {
          assert.deepEqual(JSON.parse(JSON.stringify(machine.kept(result.state))), step.kept, `${place}: kept`);
        }
        if (step.isUnchanged) assert.strictEqual(result.state, state, `${place}: a new state where nothing changed`);
        state = frozen(result.state);
      });
    });
  }
}

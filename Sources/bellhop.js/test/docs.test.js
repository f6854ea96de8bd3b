// Every test, case and trial that Docs/clients.md names exists.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

const root = new URL("../../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");
const rows = read("Docs/clients.md").split("\n").filter((line) => /^\| (?!row )[^-|]/.test(line));

/** Returns why the named test or case does not exist; undefined if it does. */
function missing(name) {
  const [, place, title] = /^([^:]+)(?:: (.+))?$/.exec(name);
  if (place.endsWith(".py")) return existsSync(new URL(`Tests/browser/${place}`, root)) ? undefined : "no such trial";
  if (place.endsWith(".test.js")) {
    const path = `Sources/bellhop.js/test/${place}`;
    // The titles of tests that run once per transport have a suffix.
    const text = existsSync(new URL(path, root)) ? read(path) : "";
    return text.includes(`("${title}"`) || text.includes(`(\`${title} ($`) ? undefined : `${place} has no such test`;
  }
  const path = `Tests/Fixtures/Client/${place}.json`;
  if (!existsSync(new URL(path, root))) return "no such machine";
  return JSON.parse(read(path)).cases.some((one) => one.name === title) ? undefined : `${path} has no such case`;
}

test("every client requirement names an existing test", () => {
  assert.equal(rows.length, 72);
  for (const row of rows) {
    const [id, , shown, ...more] = row.slice(2).split(" | ");
    assert.ok(shown && more.length === 0, `three cells: ${row}`);
    const names = [...shown.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
    assert.ok(names.length > 0, `${id}: nothing shows it`);
    for (const name of names) assert.equal(missing(name), undefined, `${id}: ${name}`);
  }
});

test("a missing test is detected", () => {
  for (const name of ["counts: no such case", "nothing: at all", "connect.test.js: no such test", "nothing.py"]) {
    assert.ok(missing(name), name);
  }
});

// A TypeScript app with bellhop.js as a package, in tsc's strictest mode and with both module resolutions: the API is
// typed, and the declarations only name existing modules.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const source = new URL("../", import.meta.url).pathname;
const root = new URL("../../../.build-js", import.meta.url).pathname;
const hasTypeScript = spawnSync("tsc", ["--version"]).status === 0;
const app = `
import { connect } from "bellhop.js";
import { connect as connectCore } from "bellhop.js/core";
import { badges, queue } from "bellhop.js/features";
import type { Badges, BodyOf } from "bellhop.js/models";
import { expoPlayer } from "bellhop.js/players";
import { useNotifications, useVisibleRows } from "bellhop.js/react";
import { memoryStorage } from "bellhop.js/storage/memory";
import { bridge } from "bellhop.js/tanstack";
import { tabs } from "bellhop.js/tabs";
import { xhrTransport } from "bellhop.js/transport/xhr";

const url = "https://bells.example";
const all = connect({
  url, token: "t", player: expoPlayer({}), storage: memoryStorage(), transport: xhrTransport(),
});
export const total: number = all.badges.get()?.total ?? 0;
all.conversation("c1").send("Hi").then((answer) => answer?.status);
const small = connectCore({ url, token: "t", tabs, features: { badges, queue } });
export function component(): string {
  const { items, markRead } = useNotifications();
  if (items[0]) void markRead(items[0].id);
  return useVisibleRows("posts", [1, "2"]).ids.join();
}
declare const queryClient: Parameters<typeof bridge>[0];
export const stop: () => void = bridge(queryClient, all);
export const isLive: boolean = small.queue("s1").get().isLive;
// @ts-expect-error: the core was created without it
small.feed();
// @ts-expect-error: it was created without invalidation too
bridge(queryClient, small);

all.on("badges:update", ({ data }: { data: Badges }) => data.total);
// Without declared events, an app's event may have every name that is not one of Bellhop's.
all.on("order:ready", ({ data }) => {
  // @ts-expect-error: the data of an undeclared event is unknown
  data.orderId;
});
// @ts-expect-error: an event of the service has another name
all.on("badges:updat", () => {});
// @ts-expect-error: counts have no such member
all.on("badges:update", (event) => event.data.any.thing);
// @ts-expect-error: there is no such path
all.get("/v1/mee");
export const change: BodyOf<"PATCH", "/v1/bookings/b1"> = { status: "cancelled" };
all.booking("b1").change(change);
// @ts-expect-error: a booking has no such member
all.booking("b1").change({ nonsense: 1 });
`;

/** Compiles an app outside of this repository, as TypeScript does with an installed package. */
function compile(t, text, resolution, module) {
  const folder = mkdtempSync(join(tmpdir(), "bellhop-consumer-"));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules/bellhop.js"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(join(folder, "app.ts"), text);
  const flags = `--noEmit --strict --target es2022 --lib ES2022,DOM --module ${module}`.split(" ");
  const { status, stdout } = spawnSync("tsc", [...flags, "--moduleResolution", resolution, "app.ts"], {
    cwd: folder, encoding: "utf8",
  });
  assert.equal(status, 0, stdout);
}

const skip = hasTypeScript ? false : "no tsc";
for (const [resolution, module] of [["node", "es2022"], ["node16", "node16"]]) {
  test(`an app in TypeScript compiles with the resolution ${resolution}`, { skip }, (t) => {
    compile(t, app, resolution, module);
  });
}

test("the TypeScript of README.md compiles", { skip }, (t) => {
  const [, example] = /```ts\n([^]*?)```/.exec(readFileSync(join(root, "README.md"), "utf8"));
  const known = `
    import { connect } from "bellhop.js";
    const bell = connect({ url: "https://bells.example", token: "t" });
    declare function show(badges: Badges): void;
    declare function report(detail: string | undefined): void;
    declare function ring(orderId: string): void;
  `;
  compile(t, known + example, "node16", "node16");
});

test("every event that a store emits has a type", () => {
  const text = (folder) => readdirSync(join(source, folder)).map((name) => readFileSync(join(source, folder, name), "utf8"));
  const machines = text("machines").join("\n");
  const named = [...machines.matchAll(/do: "publish", name: "([^"]+)"/g)].map(([, name]) => name);
  // The contract names the event of a list's refused writes.
  const lists = readFileSync(join(source, "lists.ts"), "utf8");
  const emitted = [...named, ...[...lists.matchAll(/refused: \{ event: "([^"]+)"/g)].map(([, name]) => name)];
  const declared = readFileSync(join(source, "contract.ts"), "utf8") + readFileSync(join(source, "models.ts"), "utf8");
  assert.ok(emitted.length >= 15, emitted.join());
  assert.equal(machines.match(/do: "publish"/g).length, named.length + 1, "an event without a literal name");
  for (const name of emitted) assert.ok(declared.includes(`  "${name}": `), `${name} has no type`);
});

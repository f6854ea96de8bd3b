// A TypeScript app with bellhop.js as a package, in tsc's strictest mode and with both module resolutions: the API is
// typed, and the declarations only name existing modules.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const root = new URL("../", import.meta.url).pathname;
const hasTypeScript = spawnSync("tsc", ["--version"]).status === 0;
const app = `
import { connect } from "bellhop.js";
import { connect as connectCore } from "bellhop.js/core";
import { badges, queue } from "bellhop.js/features";
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
`;

for (const [resolution, module] of [["node", "es2022"], ["node16", "node16"]]) {
  const skip = hasTypeScript ? false : "no tsc";
  test(`an app in TypeScript is typed by itself, by the resolution ${resolution}`, { skip }, (t) => {
    const folder = mkdtempSync(join(tmpdir(), "bellhop-consumer-"));
    t.after(() => rmSync(folder, { recursive: true }));
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(root, join(folder, "node_modules/bellhop.js"));
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    writeFileSync(join(folder, "app.ts"), app);
    const flags = `--noEmit --strict --target es2022 --lib ES2022,DOM --module ${module}`.split(" ");
    const { status, stdout } = spawnSync("tsc", [...flags, "--moduleResolution", resolution, "app.ts"], {
      cwd: folder, encoding: "utf8",
    });
    assert.equal(status, 0, stdout);
  });
}

// The real service on its own port, for tests. BELLHOP_BIN is the path of its binary; the default is that of `swift
// build`.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = new URL("../../../", import.meta.url).pathname;
const candidates = [process.env.BELLHOP_BIN, `${root}.build/release/bellhop`, `${root}.build/debug/bellhop`];
export const binary = candidates.find((path) => path && existsSync(path));
const secret = "a secret of tests that is long enough for HS256, 48";

// The service refuses unknown variables.
const environment = { PATH: process.env.PATH, HOME: process.env.HOME, BELLHOP_JWT_SECRET: secret };
if (process.env.TEST_EXITS) environment.TEST_EXITS = process.env.TEST_EXITS;

/** Returns a free port below those that the system assigns by itself (32768 and above). Otherwise, while a service
 * is briefly down, another test that requests any port could receive this one.
 * @returns {Promise<number>} */
export const freePort = () => new Promise((resolve) => {
  const server = createServer();
  const listen = () => void server.listen(10_000 + Math.floor(Math.random() * 22_000), "127.0.0.1");
  server.on("error", listen);
  server.on("listening", () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
  listen();
});

export async function startService(settings = {}) {
  const directory = mkdtempSync(join(tmpdir(), "bellhop-js-"));
  const port = settings.port ?? await freePort();
  const url = `http://127.0.0.1:${port}`;
  let child;

  async function start() {
    const flags = Object.entries(settings.flags ?? {}).map(([name, value]) => `--${name}=${value}`);
    child = spawn(binary, ["serve", "--port", `${port}`, "--database", `sqlite:${directory}/test.sqlite`, ...flags], {
      env: environment, stdio: ["ignore", "ignore", "pipe"],
    });
    let log = "";
    child.stderr.on("data", (data) => void (log = (log + data).slice(-10_000)));
    const isGone = new Promise((_, reject) => child.once("exit", (code) => reject(new Error(`exit ${code}: ${log}`))));
    isGone.catch(() => {});
    await Promise.race([isGone, until(() => fetch(`${url}/readyz`).then((answer) => answer.ok, () => false))]);
  }
  const ended = () => new Promise((done) => {
    if (child.exitCode !== null || child.signalCode !== null) done();
    else child.once("exit", done);
  });
  await start();
  return {
    url,
    token: (subject, ...more) => execFileSync(binary, ["token", "--subject", subject, ...more], {
      env: environment, encoding: "utf8",
    }).trim(),
    async kill(signal = "SIGKILL") {
      child.kill(signal);
      await ended();
    },
    restart: start,
    async stop() {
      child.kill("SIGKILL");
      await ended();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

// Only a failure waits this long: on a busy machine, a step of milliseconds can take a minute.
export const PATIENCE_MS = 180_000;

/** Waits for a condition, which is checked again after each turn of the event loop. */
export async function until(condition, what = condition) {
  const end = Date.now() + PATIENCE_MS;
  while (Date.now() < end) {
    const found = await condition();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 5));
  }
  throw new Error(`not in ${PATIENCE_MS} ms: ${what}`);
}

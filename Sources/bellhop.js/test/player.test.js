// R-VIS-FR-4.1 to R-VIS-FR-4.3, R-VIS-NFR-1.3: a notification plays once, in one of all tabs, and a failing player does
// no harm.
import assert from "node:assert/strict";
import { test } from "node:test";
import { expoPlayer, webPlayer } from "../../../.build-js/players.js";
import { playOnce } from "../../../.build-js/stores/player.js";

const warning = { notification: "warning", impacts: [], pulses: 2 };

/** A clock that a test controls. */
function clock() {
  const waits = [];
  return {
    waits, now: () => 0, random: () => 0,
    after(ms, run) {
      waits.push({ ms, run });
      return () => {};
    },
  };
}

function tab(user = "ada") {
  const played = [];
  return { user, clock: clock(), played, play: (haptic, sound) => void played.push([haptic?.notification ?? null,
    sound]) };
}

/** Runs with the parts of a page: locks that all tabs share, and the page's visibility. */
async function onPage(visibilityState, run) {
  const held = new Set();
  const locks = {
    async request(name, { ifAvailable }, granted) {
      assert.equal(ifAvailable, true);
      if (held.has(name)) return granted(null);
      held.add(name);
      await granted({ name });
      held.delete(name);
    },
  };
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: { locks }, configurable: true });
  globalThis.document = { visibilityState };
  try {
    await run();
  } finally {
    delete globalThis.document;
    if (before) Object.defineProperty(globalThis, "navigator", before);
    else delete globalThis.navigator;
  }
}

test("R-CUT-B-2: two simultaneous events complement each other", () => {
  const bell = tab();
  playOnce(bell, { haptic: { notification: "success" }, sound: false, key: "booking:b1:confirmed" });
  playOnce(bell, { haptic: warning, sound: true, key: "booking:b1:confirmed" });
  playOnce(bell, { haptic: warning, sound: true, key: "booking:b1:confirmed" });
  assert.deepEqual(bell.played, [["success", false], [null, true]]);
});

test("R-VIS-NFR-4.3: a key plays once, another key plays again, and the remembered keys are bounded", () => {
  const bell = tab();
  for (let index = 0; index < 600; index += 1) playOnce(bell, { haptic: warning, sound: true, key: `n${index}` });
  playOnce(bell, { haptic: warning, sound: true, key: "n599" });
  assert.equal(bell.played.length, 600);
});

test("R-VIS-FR-4.2: one of all tabs plays", async () => {
  const tabs = [tab(), tab(), tab()];
  await onPage("visible", async () => {
    for (const bell of tabs) playOnce(bell, { haptic: warning, sound: true, key: "n1" });
    await Promise.resolve();
    assert.equal(tabs.flatMap(({ played }) => played).length, 1);
    playOnce(tabs[1], { haptic: warning, sound: true, key: "n2" });
    await Promise.resolve();
    assert.equal(tabs.flatMap(({ played }) => played).length, 2);
  });
});

test("R-VIS-FR-4.2: a hidden tab lets a visible one play, within 100 ms", async () => {
  const hidden = tab();
  await onPage("hidden", async () => {
    playOnce(hidden, { haptic: warning, sound: true, key: "n1" });
    assert.deepEqual(hidden.played, []);
    const [{ ms, run }] = hidden.clock.waits;
    assert.ok(ms < 100);
    run();
    await Promise.resolve();
    assert.deepEqual(hidden.played, [["warning", true]]);
  });
});

test("R-VIS-FR-4.3: a failing player is reported and affects nothing else", async () => {
  const reported = [];
  const before = globalThis.reportError;
  globalThis.reportError = (error) => void reported.push(error.message);
  try {
    const thrown = { ...tab(), play: () => { throw new Error("no hardware"); } };
    playOnce(thrown, { haptic: warning, sound: false, key: "n1" });
    const rejected = { ...tab(), play: async () => { throw new Error("no sound"); } };
    playOnce(rejected, { haptic: warning, sound: true, key: "n1" });
    await new Promise((done) => setImmediate(done));
    assert.deepEqual(reported, ["no hardware", "no sound"]);
  } finally {
    globalThis.reportError = before;
  }
});

test("R-VIS-FR-4.1: Expo's calls are as required, and a device without hardware stays silent", async () => {
  const calls = [];
  const Haptics = {
    NotificationFeedbackType: { Success: "S", Warning: "W", Error: "E" }, ImpactFeedbackStyle: { Heavy: "H" },
    notificationAsync: async (type) => void calls.push(type), impactAsync: async (style) => void calls.push(style),
  };
  const play = expoPlayer(Haptics, () => void calls.push("sound"));
  await play({ notification: "error", impacts: ["heavy", "heavy"], pulses: 3 }, false);
  await play(warning, true);
  await play({ notification: "success", impacts: [], pulses: 1 }, false);
  await play(null, false);
  assert.deepEqual(calls, ["E", "H", "H", "W", "sound", "S"]);
  const broken = { ...Haptics, notificationAsync: async () => { throw new Error("none"); } };
  await expoPlayer(broken, async () => { throw new Error("muted"); })(warning, true);
});

test("R-VIS-FR-4.1: a browser vibrates with the pulses of the priority", () => {
  const patterns = [];
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: { vibrate: (pattern) => patterns.push(pattern) },
    configurable: true });
  try {
    const play = webPlayer();
    play({ pulses: 3 }, true);
    play({ pulses: 1 }, false);
    play(null, true);
    assert.deepEqual(patterns, [[60, 80, 60, 80, 60], [60]]);
  } finally {
    if (before) Object.defineProperty(globalThis, "navigator", before);
    else delete globalThis.navigator;
  }
});

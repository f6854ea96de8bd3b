// Plays each notification once: in one of all tabs, and for whichever of its events arrives first.
import { report } from "./store.js";
import type { PlayAction } from "../actions.js";
import type { Haptic, PlayedText } from "../features.js";
import type { Globals, StoreBell } from "../internal.js";
import type { JSONValue } from "../types.js";

type Event = { name: string; data: JSONValue };

/** The number of played keys kept per bell; beyond it the oldest are dropped. */
const keysMax = 500;
/** How long the lock is held; other tabs receive the same event within this time. */
const holdMs = 10_000;
/** A hidden tab waits this long, so that a visible one plays instead: a hidden page may not vibrate. */
const hiddenMs = 40;

const played = new WeakMap<StoreBell, Map<string, { haptic: boolean; sound: boolean }>>();

/** @param event the notification, or another event that is felt */
export function playOnce(bell: StoreBell, { haptic, sound, key }: Omit<PlayAction, "do">, event?: Event) {
  const keys = played.get(bell) ?? new Map();
  played.set(bell, keys);
  const before = keys.get(key) ?? { haptic: false, sound: false };
  // One event may carry the haptic and the other event of the same change the sound.
  const left = { haptic: before.haptic ? null : haptic, sound: sound && !before.sound, text: textOf(event) };
  if (!left.haptic && !left.sound) return;
  keys.delete(key);
  keys.set(key, { haptic: before.haptic || Boolean(haptic), sound: before.sound || sound });
  if (keys.size > keysMax) keys.delete(keys.keys().next().value);

  const page = globalThis as unknown as Globals;
  const locks = page.document && page.navigator?.locks;
  if (!locks) return play(bell, left);
  // The tab that gets the lock plays; the others find it taken. A remaining part has its own lock name.
  const name = `bellhop played ${bell.user} ${key} ${before.haptic} ${before.sound}`;
  const take = () => locks.request(name, { ifAvailable: true }, (lock) => {
    if (!lock) return;
    play(bell, left);
    return new Promise((done) => bell.clock.after(holdMs, () => done(null)));
  }).catch(report);
  if (page.document?.visibilityState === "hidden") bell.clock.after(hiddenMs, take);
  else take();
}

/** Returns what an app shows in a local notification while it is in the background. */
function textOf(event?: Event) {
  if (event?.name !== "notification:created") return null;
  const { id, title, message, lockScreen } = event.data;
  return { id, title, text: message, lockScreen };
}

/** Plays. Missing hardware or a failing player is not an error (R-VIS-FR-4.3). */
function play(
  bell: StoreBell, { haptic, sound, text }: { haptic: Haptic | null; sound: boolean; text: PlayedText | null },
) {
  try {
    Promise.resolve(bell.play(haptic, sound, text)).catch(report);
  } catch (error) {
    report(error);
  }
}

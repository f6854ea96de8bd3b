// Plays each notification once: in one of all tabs, and for whichever of its events arrives first.
import { report } from "./store.js";

/** The number of played keys kept per bell; beyond it the oldest are dropped. */
const keysMax = 500;
/** How long the lock is held; other tabs receive the same event within this time. */
const holdMs = 10_000;
/** A hidden tab waits this long, so that a visible one plays instead: a hidden page may not vibrate. */
const hiddenMs = 40;

/** @typedef {import("../internal").StoreBell} StoreBell */

/** @type {WeakMap<StoreBell, Map<string, {haptic: boolean, sound: boolean}>>} */
const played = new WeakMap();

/** @param {StoreBell} bell @param {Omit<import("../internal").PlayAction, "do">} action
 * @param {import("../types").Event} [event] the notification, or another event that is felt */
export function playOnce(bell, { haptic, sound, key }, event) {
  const keys = played.get(bell) ?? new Map();
  played.set(bell, keys);
  const before = keys.get(key) ?? { haptic: false, sound: false };
  // One event may carry the haptic and the other event of the same change the sound.
  const left = { haptic: before.haptic ? null : haptic, sound: sound && !before.sound, text: textOf(event) };
  if (!left.haptic && !left.sound) return;
  keys.delete(key);
  keys.set(key, { haptic: before.haptic || Boolean(haptic), sound: before.sound || sound });
  if (keys.size > keysMax) keys.delete(keys.keys().next().value);

  const page = /** @type {import("../internal").Globals} */ (/** @type {unknown} */ (globalThis));
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

/** Returns what an app shows in a local notification while it is in the background.
 * @param {import("../types").Event} [event] */
function textOf(event) {
  if (event?.name !== "notification:created") return null;
  const { id, title, message, lockScreen } = event.data;
  return { id, title, text: message, lockScreen };
}

/** Plays. Missing hardware or a failing player is not an error (R-VIS-FR-4.3).
 * @param {StoreBell} bell @param {{haptic: import("../features").Haptic | null, sound: boolean,
 *   text: import("../features").PlayedText | null}} what */
function play(bell, { haptic, sound, text }) {
  try {
    Promise.resolve(bell.play(haptic, sound, text)).catch(report);
  } catch (error) {
    report(error);
  }
}

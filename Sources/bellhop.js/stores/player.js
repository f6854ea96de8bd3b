// Each notification moves the phone, and sounds, once: in one of all tabs, and by whichever of its events is first.
import { report } from "../core.js";

/** Keys of a bell that were played; the oldest go. */
const keysMax = 500;
/** For so long other tabs hear of the same event at the latest. */
const holdMs = 10_000;
/** A tab that nobody looks at leaves it to one that somebody does: a hidden page may not vibrate. */
const hiddenMs = 40;

/** @type {WeakMap<any, Map<string, {haptic: boolean, sound: boolean}>>} */
const played = new WeakMap();

/** @param {any} bell @param {{haptic: any, sound: boolean, key: string}} action */
export function playOnce(bell, { haptic, sound, key }) {
  const keys = played.get(bell) ?? new Map();
  played.set(bell, keys);
  const before = keys.get(key) ?? { haptic: false, sound: false };
  // One event may have had the haptic and the other, of the same moment, the sound.
  const left = { haptic: before.haptic ? null : haptic, sound: sound && !before.sound };
  if (!left.haptic && !left.sound) return;
  keys.delete(key);
  keys.set(key, { haptic: before.haptic || Boolean(haptic), sound: before.sound || sound });
  if (keys.size > keysMax) keys.delete(keys.keys().next().value);

  const page = /** @type {any} */ (globalThis);
  const locks = page.document && page.navigator?.locks;
  if (!locks) return play(bell, left);
  // Whoever gets the lock plays; the others find it taken. What is left over has a name of its own.
  const name = `bellhop played ${bell.user} ${key} ${before.haptic} ${before.sound}`;
  const take = () => locks.request(name, { ifAvailable: true }, (/** @type {any} */ lock) => {
    if (!lock) return;
    play(bell, left);
    return new Promise((done) => bell.clock.after(holdMs, () => done(null)));
  }).catch(report);
  if (page.document.visibilityState === "hidden") bell.clock.after(hiddenMs, take);
  else take();
}

/** A device without the hardware, or a player that fails, is no reason to fail (R-VIS-FR-4.3).
 * @param {any} bell @param {{haptic: any, sound: boolean}} what */
function play(bell, { haptic, sound }) {
  try {
    Promise.resolve(bell.play(haptic, sound)).catch(report);
  } catch (error) {
    report(error);
  }
}

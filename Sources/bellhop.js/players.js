// Players for `connect({ player })`, which play the haptics and the sound of a notification.

/**
 * @typedef {import("./features").Haptic} Haptic
 * @typedef {{notificationAsync(type: unknown): Promise<void>, impactAsync(style: unknown): Promise<void>,
 *   NotificationFeedbackType: Record<string, unknown>, ImpactFeedbackStyle: Record<string, unknown>}} ExpoHaptics
 */

/**
 * The calls of Expo that R-VIS-FR-4.1 names: `expoPlayer(Haptics, () => sound.replayAsync())`. A device without the
 * hardware stays silent.
 * @param {ExpoHaptics} Haptics the module `expo-haptics`
 * @param {() => any} [playSound]
 */
export function expoPlayer(Haptics, playSound) {
  const kinds = /** @type {Record<string, string>} */ ({ success: "Success", warning: "Warning", error: "Error" });
  return async (/** @type {Haptic | null} */ haptic, /** @type {boolean} */ sound) => {
    const sounding = sound && playSound ? Promise.resolve().then(playSound).catch(() => {}) : null;
    if (haptic) {
      try {
        await Haptics.notificationAsync(Haptics.NotificationFeedbackType[kinds[haptic.notification]]);
        for (const impact of haptic.impacts) {
          await Haptics.impactAsync(Haptics.ImpactFeedbackStyle[impact[0].toUpperCase() + impact.slice(1)]);
        }
      } catch {
        // The hardware is missing or switched off; the notification still shows on the screen.
      }
    }
    await sounding;
  };
}

/**
 * A browser's: as many pulses as the notification has, where the device vibrates, and a sound.
 * @param {string} [soundURL]
 */
export function webPlayer(soundURL) {
  const { Audio, navigator } = /** @type {import("./internal").Globals} */ (/** @type {unknown} */ (globalThis));
  const audio = soundURL && Audio ? new Audio(soundURL) : null;
  return (/** @type {Haptic | null} */ haptic, /** @type {boolean} */ sound) => {
    if (haptic) navigator?.vibrate?.(Array.from({ length: haptic.pulses * 2 - 1 }, (_, index) => index % 2 ? 80 : 60));
    // Browsers block sound until the user has interacted with the page; that is not an error.
    if (sound && audio) return Promise.resolve(audio.play()).catch(() => {});
  };
}

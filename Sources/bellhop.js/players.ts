// Players for `connect({ player })`, which play the haptics and the sound of a notification.
import type { Haptic } from "./features.js";
import type { Globals } from "./internal.js";

/** Plays a notification's haptics and sound, for `connect({ player })`. */
export type Player = (haptic: Haptic | null, sound: boolean) => void | Promise<void>;

/** The part of the module `expo-haptics` that a player uses. */
interface ExpoHaptics {
  notificationAsync(type: unknown): Promise<void>;
  impactAsync(style: unknown): Promise<void>;
  NotificationFeedbackType: Record<string, unknown>;
  ImpactFeedbackStyle: Record<string, unknown>;
}

/** A player for the module `expo-haptics`, with the calls that R-VIS-FR-4.1 names:
 * `expoPlayer(Haptics, () => sound.replayAsync())`. A device without haptic hardware stays silent. */
export function expoPlayer(Haptics: object, playSound?: () => unknown): Player {
  const expo = Haptics as ExpoHaptics;
  const kinds = { success: "Success", warning: "Warning", error: "Error" } as Record<string, string>;
  return async (haptic: Haptic | null, sound: boolean) => {
    const sounding = sound && playSound ? Promise.resolve().then(playSound).catch(() => {}) : null;
    if (haptic) {
      try {
        await expo.notificationAsync(expo.NotificationFeedbackType[kinds[haptic.notification]]);
        for (const impact of haptic.impacts) {
          await expo.impactAsync(expo.ImpactFeedbackStyle[impact[0].toUpperCase() + impact.slice(1)]);
        }
      } catch {
        // The hardware is missing or switched off; the notification still shows on the screen.
      }
    }
    await sounding;
  };
}

/** A player for browsers: one vibration per pulse, if the device vibrates, and a sound. */
export function webPlayer(soundURL?: string): Player {
  const { Audio, navigator } = globalThis as unknown as Globals;
  const audio = soundURL && Audio ? new Audio(soundURL) : null;
  return (haptic: Haptic | null, sound: boolean) => {
    if (haptic) navigator?.vibrate?.(Array.from({ length: haptic.pulses * 2 - 1 }, (_, index) => index % 2 ? 80 : 60));
    // Browsers block sound until the user has interacted with the page; that is not an error.
    if (sound && audio) return Promise.resolve(audio.play()).catch(() => {});
  };
}

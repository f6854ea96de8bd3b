import type { Haptic } from "./features.js";

/** Plays a notification's haptics and sound: for `connect({ player })`. */
export type Player = (haptic: Haptic | null, sound: boolean) => void | Promise<void>;
/** By the module `expo-haptics`; a device without the hardware stays silent. */
export function expoPlayer(Haptics: any, playSound?: () => any): Player;
/** A browser's: as many pulses as the notification has, where the device vibrates, and a sound. */
export function webPlayer(soundURL?: string): Player;

import type { Haptic } from "./features.js";

/** Plays a notification's haptics and sound, for `connect({ player })`. */
export type Player = (haptic: Haptic | null, sound: boolean) => void | Promise<void>;
/** A player for the module `expo-haptics`. A device without haptic hardware stays silent. */
export function expoPlayer(Haptics: any, playSound?: () => any): Player;
/** A player for browsers: one vibration per pulse, if the device vibrates, and a sound. */
export function webPlayer(soundURL?: string): Player;

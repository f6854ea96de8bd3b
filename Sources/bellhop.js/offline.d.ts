import type { Item, Offline } from "./types.js";

export interface OfflineLimits {
  /** Maximum number of bytes of one user: 1,000,000. What was changed last stays. */
  bytesMax?: number;
  /** A store whose state is larger is not kept: 262,144. */
  entryBytesMax?: number;
  /** Maximum number of stores: 100. */
  entriesMax?: number;
  /** A state is written once changes rest for this long: 500 milliseconds … */
  restMs?: number;
  /** … or have continued for this long: 5,000 milliseconds. */
  restMsMax?: number;
}

export interface OfflineOptions {
  /** Called by `signOut` if writes wait, which it would delete. With `false` the user stays signed in, and `signOut`
   * resolves with null. */
  mayDiscard?(waiting: Item[]): boolean | Promise<boolean>;
  limits?: OfflineLimits;
}

/** Keeps the stores' state on the device, for `connect({ offline: offline() })`. */
export function offline(options?: OfflineOptions): Offline;

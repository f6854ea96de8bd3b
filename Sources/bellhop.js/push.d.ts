import type { Answer } from "./contract.js";
import type { Problem, Store } from "./features.js";
import type { BodyOf } from "./models.js";
import type { Feature } from "./types.js";

/** Whether this device receives push messages.
 *
 * - `off`: this device is not registered.
 * - `asking`: the browser asks the user for the permission.
 * - `registering`: the service has not answered yet.
 * - `on`: this device receives push messages.
 * - `denied`: the user has refused the permission.
 * - `unsupported`: this browser has no push messages.
 * - `unavailable`: the service sends none to browsers.
 * - `refused`: the service has refused the device; see `problem`.
 */
export type PushStatus =
  | "off" | "asking" | "registering" | "on" | "denied" | "unsupported" | "unavailable" | "refused";

export interface PushState {
  status: PushStatus;
  problem: Problem | null;
  /** The id under which the service knows this device; "" until it is first registered. */
  deviceId: string;
}

export interface PushStore extends Omit<Store<PushState>, "refresh"> {
  /** Asks the user for the permission, and registers this browser. Call it when the user has tapped: browsers ask only
   * then. `url` is the page that a tap on a message opens; by default the scope of the worker. */
  enable(options?: { serviceWorker?: string | ServiceWorkerRegistration; url?: string }): Promise<PushState>;
  /** Ends the push messages to this device. */
  disable(): Promise<PushState>;
  /** Registers the token of a native app. Call it at each start. */
  register(device: Omit<BodyOf<"PUT", "/v1/devices/{id}">, "subscription">): Promise<PushState>;
  /** Has the service send a test message to this device. */
  test(): Promise<Answer | null>;
}

/** Push messages: `connect({ features: { push } })`. */
export const push: Feature<PushStore>;

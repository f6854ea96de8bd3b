import type { Features } from "./features.js";
import type { Bell, DeviceOptions } from "./types.js";

export type { Answer, Event } from "./contract.js";
export type { Bell, Connection, DeviceOptions as Options, Status } from "./types.js";
export type { Features } from "./features.js";

/** Connects to a service, with every feature. */
export function connect(options: DeviceOptions): Bell & Features;

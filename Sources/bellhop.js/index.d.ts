import type { Features } from "./features.js";
import type { Bell, Options } from "./types.js";

export type { Answer, Bell, Connection, Event, Options, Status } from "./types.js";
export type { Features } from "./features.js";

/** Connects to a service, with every feature. */
export function connect(options: Options): Bell & Features;

import type { Features } from "./features.js";
import type { AnyFeature, Bell, DeviceOptions, StoresOf } from "./types.js";

export type { Answer, Event } from "./contract.js";
export type { Bell, Connection, DeviceOptions as Options, Status } from "./types.js";
export type { Features } from "./features.js";

/** Connects to a service, with every feature; `features` adds others, such as `push`. */
export function connect<Given extends Record<string, AnyFeature> = {}>(options: DeviceOptions & { features?: Given }):
  Bell & Features & StoresOf<Given>;

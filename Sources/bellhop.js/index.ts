// The complete bellhop.js: every feature, one stream shared by all tabs, adapters for React Native's packages, and a
// stream by XMLHttpRequest where fetch does not stream. For a smaller client, use bellhop.js/core and add what the app
// needs.
import { checkParts, lifecycleOf, networkOf, storageOf } from "./adapters/device.js";
import { connect as connectCore } from "./core.js";
import * as features from "./features.js";
import { tabs as allTabs } from "./tabs.js";
import { fetchStreams } from "./transport/fetch.js";
import { xhrTransport } from "./transport/xhr.js";
import type { Features } from "./features.js";
import type { AnyFeature, Bell, DeviceOptions, StoresOf } from "./types.js";

export type { Answer, Event } from "./contract.js";
export type { Features } from "./features.js";
export type { Bell, Connection, DeviceOptions as Options, Status } from "./types.js";

/** Connects to a service, with every feature; `features` adds others, such as `push`. */
export function connect<Given extends Record<string, AnyFeature> = {}>(
  options: DeviceOptions & { features?: Given },
): Bell & Features & StoresOf<Given> {
  const given: Partial<DeviceOptions> = options ?? {};
  const { transport = "auto", tabs = "auto", network, lifecycle, storage, fetch } = given;
  const needsXHR = transport === "xhr" || (transport === "auto" && !fetchStreams(fetch));
  const isUsable = typeof transport === "function" ||
    (needsXHR ? typeof XMLHttpRequest === "function" : ["auto", "fetch"].includes(transport) && fetchStreams(fetch));
  if (!isUsable) throw new TypeError(`connect: transport "${transport}" does not stream`);
  const parts = { network: networkOf(network), lifecycle: lifecycleOf(lifecycle), storage: storageOf(storage) };
  checkParts(parts);
  // The core rejects options that are not an object.
  return connectCore(options && {
    ...options, ...parts, features: { ...features, ...options.features }, tabs: tabs === "auto" ? allTabs : tabs,
    ...(needsXHR ? { transport: xhrTransport() } : {}),
  }) as unknown as Bell & Features & StoresOf<Given>;
}

// bellhop.js with all there is: every feature, one stream for all tabs, React Native's packages as they are, and a
// stream by XMLHttpRequest where fetch does not stream. Who wants less takes bellhop.js/core, and what else it needs.
import { checkParts, lifecycleOf, networkOf, storageOf } from "./adapters/device.js";
import { connect as connectCore } from "./core.js";
import * as features from "./features.js";
import { tabs as allTabs } from "./tabs.js";
import { fetchStreams } from "./transport/fetch.js";
import { xhrTransport } from "./transport/xhr.js";

/** Connects to a service.
 * @param {import("./types").Options} options
 * @returns {import("./types").Bell & import("./features").Features} */
export function connect(options) {
  const { transport = "auto", tabs = "auto", network, lifecycle, storage, fetch } = options ?? {};
  const needsXHR = transport === "xhr" || (transport === "auto" && !fetchStreams(fetch));
  const isUsable = typeof transport === "function" ||
    (needsXHR ? typeof XMLHttpRequest === "function" : ["auto", "fetch"].includes(transport) && fetchStreams(fetch));
  if (!isUsable) throw new TypeError(`connect: transport "${transport}" does not stream`);
  const parts = { network: networkOf(network), lifecycle: lifecycleOf(lifecycle), storage: storageOf(storage) };
  checkParts(parts);
  // What is no object at all is refused by the core, and says so.
  return connectCore(options && {
    features, ...options, ...parts, tabs: tabs === "auto" ? allTabs : tabs,
    ...(needsXHR ? { transport: xhrTransport() } : {}),
  });
}

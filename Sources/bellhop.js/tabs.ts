// One stream for all tabs of an origin, in a SharedWorker, or held by one of them: `connect({ url, token, tabs })`.
import { tableLine } from "./stores/tables.js";
import { group } from "./tabs/group.js";
import { startWorker } from "./tabs/start.js";
import type { Globals } from "./internal.js";
import type { Options, Tabs } from "./types.js";

/** One stream for all tabs of an origin: `connect({ url, token, tabs })` of bellhop.js/core. */
export const tabs: Tabs = ({ options, url, identity, ...parts }) => {
  const page = globalThis as unknown as Globals;
  // Only pages have tabs. Without these two APIs, tabs cannot find each other.
  if (!page.document || !page.BroadcastChannel || !page.navigator?.locks) return null;
  const { clock, makeHolder } = parts;
  // The number separates incompatible versions: a worker may be older than its tabs.
  const name = `${parts.name} 3`;
  return group({
    ...parts, name, isTab: true,
    // Another tab may show rows, whatever the features of this one.
    makeHolder: (own) => makeHolder({ ...own, rows: tableLine }),
    startWorker: maySendWorker(options)
      ? (enter) => startWorker({ url, identity, name, scope: `${parts.name} ` }, clock, enter) : undefined,
  });
};

/** Returns whether a worker can hold the stream: it cannot use parts that the page injects. */
const maySendWorker = ({ storage, network, transport = "auto", fetch, clock, limits }: Options) =>
  !storage && !network && !fetch && !clock && !limits && transport === "auto" && typeof SharedWorker === "function";

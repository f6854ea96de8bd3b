// One stream for all tabs of an origin, in a SharedWorker, or held by one of them: `connect({ url, token, tabs })`.
import { tableLine } from "./stores/tables.js";
import { group } from "./tabs/group.js";
import { startWorker } from "./tabs/start.js";

/** @type {import("./internal").ShareTabs} */
export const tabs = ({ options, url, identity, ...parts }) => {
  const page = /** @type {import("./internal").Globals} */ (/** @type {unknown} */ (globalThis));
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

// Returns whether a worker can hold the stream: it cannot use parts that the page injects.
/** @param {import("./types").Options} options */
const maySendWorker = ({ storage, network, transport = "auto", fetch, clock, limits }) =>
  !storage && !network && !fetch && !clock && !limits && transport === "auto" && typeof SharedWorker === "function";

// One stream for all tabs of an origin, in a SharedWorker, or held by one of them: `connect({ url, token, tabs })`.
import { group } from "./tabs/group.js";
import { startWorker } from "./tabs/start.js";

/** @type {import("./internal").ShareTabs} */
export const tabs = ({ options, url, user, identity, ...parts }) => {
  const page = /** @type {any} */ (globalThis);
  // Only pages have tabs; and without these two nobody could tell which one of them is there.
  if (!page.document || !page.BroadcastChannel || !page.navigator.locks) return null;
  const { name, clock } = parts;
  return group({
    ...parts, isTab: true,
    startWorker: maySendWorker(options) ? (enter) => startWorker({ url, user, identity, name }, clock, enter) : undefined,
  });
};

// The worker has none of the page's own parts.
/** @param {import("./types").Options} options */
const maySendWorker = ({ storage, network, transport = "auto", fetch, clock, limits }) =>
  !storage && !network && !fetch && !clock && !limits && transport === "auto" && typeof SharedWorker === "function";

import type { Tabs } from "./types.js";

/** One stream for all tabs of an origin: `connect({ url, token, tabs })` of bellhop.js/core. */
export const tabs: Tabs;

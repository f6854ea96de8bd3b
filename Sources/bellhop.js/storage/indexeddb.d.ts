import type { Storage } from "../types.js";

/** What all tabs and the worker of an origin share, and what outlives them. */
export function indexedDBStorage(name?: string): Storage;

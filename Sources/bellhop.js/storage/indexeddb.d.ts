import type { Storage } from "../types.js";

/** A storage that all tabs and the worker of an origin share, and that outlives them. */
export function indexedDBStorage(name?: string): Storage;

import type { Storage } from "../types.js";

/** Lasts as long as the page. */
export function memoryStorage(): Storage;

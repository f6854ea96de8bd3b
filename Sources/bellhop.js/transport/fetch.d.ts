import type { Transport } from "../types.js";

/** Where fetch does not stream, its Response has no body to read. */
export function fetchStreams(fetch?: typeof globalThis.fetch): boolean;
/** The stream by fetch, where it streams. */
export function fetchTransport(fetch?: typeof globalThis.fetch): Transport;

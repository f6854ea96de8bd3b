import type { Transport } from "../types.js";

/** Returns whether fetch streams. Where it does not, its Response has no readable body. */
export function fetchStreams(fetch?: typeof globalThis.fetch): boolean;
/** A transport by fetch, for environments in which fetch streams. */
export function fetchTransport(fetch?: typeof globalThis.fetch): Transport;

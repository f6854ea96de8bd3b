import type { Transport } from "../types.js";

/** The stream by XMLHttpRequest's progress, where fetch does not stream: React Native.
 * Past `charsMax` of text a response is resumed on a new connection. */
export function xhrTransport(Request?: new () => XMLHttpRequest, charsMax?: number): Transport;

import type { Transport } from "../types.js";

/** A transport by XMLHttpRequest's progress events, where fetch does not stream: React Native. After `charsMax`
 * characters of a response the stream resumes on a new connection. */
export function xhrTransport(Request?: new () => XMLHttpRequest, charsMax?: number): Transport;

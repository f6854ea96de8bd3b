// Validation of the options of `connect`.
import type { Globals } from "./internal.js";
import type { Options } from "./types.js";

export function checked(options: Options) {
  if (typeof options?.token !== "string" && typeof options?.token !== "function") {
    throw new TypeError("connect: token must be text or a function");
  }
  let url;
  try {
    url = new URL(options.url, (globalThis as unknown as Globals).location?.href);
  } catch {}
  if (!url || !/^https?:$/.test(url.protocol)) throw new TypeError("connect: url must begin with http(s)://");
  const { tabs = "off" } = options;
  if (tabs !== "off" && typeof tabs !== "function") throw new TypeError("connect: tabs is that of bellhop.js/tabs");
  return url.href.replace(/[?#].*$/, "").replace(/\/+$/, "");
}

export function checkedTopics(topics: string[]) {
  const isTopic = (topic: string) => /^(personal|[^:,\s]+:[^,\s]+)$/.test(topic) && topic.length <= 160;
  if (!Array.isArray(topics) || !topics.every(isTopic)) {
    throw new TypeError("a topic is text such as \"queue:s1\"");
  }
  return topics;
}

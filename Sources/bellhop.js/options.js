// Validation of the options of `connect`.

/**
 * @typedef {import("./internal").Globals} Globals
 * @typedef {import("./types").Options} Options
 */

/** @param {Options} options */
export function checked(options) {
  if (typeof options?.token !== "string" && typeof options?.token !== "function") {
    throw new TypeError("connect: token must be text or a function");
  }
  let url;
  try {
    url = new URL(options.url, /** @type {Globals} */ (/** @type {unknown} */ (globalThis)).location?.href);
  } catch {}
  if (!url || !/^https?:$/.test(url.protocol)) throw new TypeError("connect: url must begin with http(s)://");
  const { tabs = "off" } = options;
  if (tabs !== "off" && typeof tabs !== "function") throw new TypeError("connect: tabs is that of bellhop.js/tabs");
  return url.href.replace(/[?#].*$/, "").replace(/\/+$/, "");
}

/** @param {string[]} topics */
export function checkedTopics(topics) {
  const isTopic = (/** @type {string} */ topic) => /^(personal|[^:,\s]+:[^,\s]+)$/.test(topic) && topic.length <= 160;
  if (!Array.isArray(topics) || !topics.every(isTopic)) {
    throw new TypeError("a topic is text such as \"queue:s1\"");
  }
  return topics;
}

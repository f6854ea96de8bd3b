// What `connect` is given, checked.

/** @typedef {import("./types").Options} Options */

/** @param {Options} options */
export function checked(options) {
  if (!options || typeof options !== "object") throw new TypeError("connect takes an object: connect({ url, token })");
  if (typeof options.token !== "string" && typeof options.token !== "function") {
    throw new TypeError("connect: token must be a token, or a function that gives one");
  }
  let url;
  try {
    url = new URL(options.url, /** @type {any} */ (globalThis).location?.href);
  } catch {
    throw new TypeError(`connect: url "${options.url}" is none`);
  }
  if (!/^https?:$/.test(url.protocol)) throw new TypeError("connect: url must begin with http:// or https://");
  const { tabs = "off" } = options;
  if (tabs !== "off" && typeof tabs !== "function") throw new TypeError("connect: tabs is that of bellhop.js/tabs");
  shaped(options, "network", "online listen");
  shaped(options, "lifecycle", "foreground listen");
  shaped(options, "storage", "get set remove keys");
  return url.href.replace(/[?#].*$/, "").replace(/\/+$/, "");
}

/** @param {any} options @param {string} name @param {string} members */
function shaped(options, name, members) {
  const given = options[name];
  const isWhole = members.split(" ").every((member) => typeof given?.[member] === "function");
  if (given && !isWhole) throw new TypeError(`connect: ${name} must have ${members.replaceAll(" ", ", ")}`);
}

/** @param {string[]} topics */
export function checkedTopics(topics) {
  const isTopic = (/** @type {any} */ topic) => typeof topic === "string" && /^[^,\s]{1,160}$/.test(topic);
  if (!Array.isArray(topics) || !topics.every(isTopic)) {
    throw new TypeError("topics are texts such as \"queue:s1\", without commas and spaces");
  }
  return topics;
}

// The keys and contents of the storage.

/** @typedef {import("../types").Storage} Storage */

/** Returns the name of a user or an identity at a service.
 * @param {{url: string}} service @param {string | null} whose */
export const nameOf = ({ url }, whose) => `bellhop 2 ${url} ${whose}`;

/** The queued writes, each under its own key, so that two tabs that add one at once do not overwrite each other.
 * @param {Storage} storage @param {string} scope */
export function outboxOf(storage, scope) {
  const prefix = `${scope}outbox/`;
  const at = (/** @type {import("../types").Item} */ item) => `${prefix}${item.order}`;
  return {
    put: (/** @type {import("../types").Item} */ item) => storage.set(at(item), JSON.stringify(item), "strict"),
    remove: (/** @type {import("../types").Item} */ item) => storage.remove(at(item)).catch(() => {}),
    async load() {
      const keys = await storage.keys(prefix).catch(() => []);
      const texts = await Promise.all(keys.map((key) => storage.get(key).catch(() => null)));
      return texts.map((text) => text && parsed(text)).filter((item) => item?.key && item.order);
    },
  };
}

/** Parses JSON; returns the text itself if it is not JSON.
 * @param {string} text */
export function parsed(text) {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// The keys and contents of the storage.

/** @typedef {import("../types").Storage} Storage */

/** Returns the name of what is stored of an identity at a service. No claim of a token is part of a name.
 * @param {{url: string}} service @param {string | null} whose */
export const nameOf = ({ url }, whose) => `bellhop 3 ${url} ${whose}`;

/** The identities that the device knows at a service, each under its own key. An identity is known until its user signs
 * out in any tab.
 * @param {{url: string, storage: Storage}} it */
export function knownOf(it) {
  const { storage } = it;
  const at = (/** @type {string} */ identity) => nameOf(it, `known/${identity}`);
  return {
    at,
    put: (/** @type {import("../machines/session.js").Known} */ known) =>
      void storage.set(at(known.identity), JSON.stringify(known)).catch(() => {}),
    remove: (/** @type {string} */ identity) => storage.remove(at(identity)).catch(() => {}).then(() => identity),
    /** @returns {Promise<import("../machines/session.js").Known[]>} */
    load: () => loaded(storage, at("")).then((all) => all.filter(Boolean)),
  };
}

/** Returns all values whose keys have the prefix.
 * @param {Storage} storage @param {string} prefix @returns {Promise<any[]>} */
async function loaded(storage, prefix) {
  const keys = await storage.keys(prefix).catch(() => []);
  return Promise.all(keys.map((key) => storage.get(key).catch(() => null).then(parsed)));
}

/** The queued writes, each under its own key, so that two tabs that add one at once do not overwrite each other.
 * @param {Storage} storage @param {string} scope */
export function outboxOf(storage, scope) {
  const prefix = `${scope}outbox/`;
  const at = (/** @type {import("../types").Item} */ item) => `${prefix}${item.order}`;
  return {
    put: (/** @type {import("../types").Item} */ item) => storage.set(at(item), JSON.stringify(item), "strict"),
    remove: (/** @type {import("../types").Item} */ item) => storage.remove(at(item)).catch(() => {}),
    load: () => loaded(storage, prefix).then((items) => items.filter((item) => item?.key && item.order)),
  };
}

/** Parses JSON; returns the text itself if it is not JSON.
 * @param {any} text */
export function parsed(text) {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

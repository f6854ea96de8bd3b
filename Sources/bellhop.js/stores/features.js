// The features as properties of a bell: `bell.badges`, `bell.queue("s1")`. Each is created at its first use.

/** The number of unwatched stores per feature that stay up to date, so that going back to a screen shows it at once. */
const unwatchedMax = 32;

/** Adds the features to a bell.
 * @param {Record<string, unknown>} bell @param {Record<string, import("../types").AnyFeature>} [features]
 * @param {import("../internal").OfflineKeeper} [offline] */
export function addFeatures(bell, features = {}, offline) {
  for (const [name, feature] of Object.entries(features)) {
    // A property of the bell itself is not replaced.
    if (name in bell || typeof feature?.make !== "function") throw new TypeError(`connect: "${name}" is no feature`);
    /** @type {Map<string, import("../internal").Closable>} */
    const stores = new Map();
    /** @param {any[]} names */
    const find = (...names) => {
      const key = JSON.stringify(feature.key?.(...names) ?? names);
      const known = stores.get(key);
      const found = known ?? feature.make(bell, ...names);
      stores.delete(key);
      stores.set(key, found);
      if (!known) offline?.adopt(name, names, `${name} ${key}`, found.keep);
      for (const [other, store] of stores) {
        if (stores.size > unwatchedMax && other !== key && !store.isWatched()) {
          stores.delete(other);
          offline?.release(`${name} ${other}`);
          store.close();
        }
      }
      return found;
    };
    if (feature.isKeyed) bell[name] = find;
    else Object.defineProperty(bell, name, { get: () => find(), enumerable: true });
    if ("isEager" in feature && feature.isEager) find();
  }
}

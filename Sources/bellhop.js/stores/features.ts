// The features as properties of a bell: `bell.badges`, `bell.queue("s1")`. Each is created at its first use.
import type { Closable, OfflineKeeper, StoreBell } from "../internal.js";
import type { AnyFeature } from "../types.js";

/** The number of unwatched stores per feature that stay up to date, so that going back to a screen shows it at once. */
const unwatchedMax = 32;

/** Adds the features to a bell. */
export function addFeatures(
  bell: StoreBell & Record<string, unknown>, features: Record<string, AnyFeature> = {}, offline?: OfflineKeeper,
) {
  for (const [name, feature] of Object.entries(features)) {
    // A property of the bell itself is not replaced.
    if (name in bell || typeof feature?.make !== "function") throw new TypeError(`connect: "${name}" is no feature`);
    const stores = new Map<string, Closable>();
    const find = (...names: unknown[]) => {
      const key = JSON.stringify(feature.key?.(...names) ?? names);
      const known = stores.get(key);
      const found = known ?? feature.make(bell, ...names) as Closable;
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

// A store of one value.
import { listeners } from "../stores/store.js";

/** Makes a store of one value, which returns the same object until it changes.
 * @template Value @param {Value} first */
export function value(first) {
  let current = first;
  const changed = /** @type {import("../types").Listeners<void>} */ (listeners());
  const get = () => current;
  return {
    get,
    /** Returns whether the value changed.
     * @param {Value} next */
    set(next) {
      if (JSON.stringify(next) === JSON.stringify(current)) return false;
      current = next;
      changed.tell();
      return true;
    },
    store: { get, subscribe: changed.add },
  };
}

// A store of one value.
import { listeners } from "../stores/store.js";

/** Makes a store of one value, which returns the same object until it changes. */
export function value<Value>(first: Value) {
  let current = first;
  const changed = listeners<void>();
  const get = () => current;
  return {
    get,
    /** Returns whether the value changed. */
    set(next: Value) {
      if (JSON.stringify(next) === JSON.stringify(current)) return false;
      current = next;
      changed.emit();
      return true;
    },
    store: { get, subscribe: changed.add },
  };
}

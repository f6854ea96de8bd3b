// The parts of a device that apps have by other names, in the shapes that a bell takes: React Native's packages.

/** @typedef {import("../types").Network} Network */
/** @typedef {import("../types").Lifecycle} Lifecycle */

/** NetInfo of React Native, or what is a network already.
 * @param {any} given @returns {Network} */
export function networkOf(given) {
  if (typeof given?.addEventListener !== "function") return given;
  let last = { isConnected: true, type: "unknown" };
  return {
    online: () => last.isConnected !== false,
    listen: (listener) => given.addEventListener((/** @type {typeof last} */ state) => {
      const changed = state.isConnected !== false && last.type !== "unknown" && state.type !== last.type;
      last = state;
      listener({ online: state.isConnected !== false, changed });
    }),
  };
}

/** AppState of React Native, or what is a lifecycle already.
 * @param {any} given @returns {Lifecycle} */
export function lifecycleOf(given) {
  if (typeof given?.addEventListener !== "function") return given;
  // iOS says "inactive" in passing, while a call or the app switcher covers it.
  const isBackground = (/** @type {string} */ state) => state === "background";
  return {
    foreground: () => !isBackground(given.currentState),
    listen(listener) {
      const subscription = given.addEventListener("change", (/** @type {string} */ state) =>
        listener(!isBackground(state)));
      return () => subscription.remove();
    },
  };
}

/** AsyncStorage of React Native (also `localStorage`), or what is a storage already.
 * @param {any} given @returns {import("../types").Storage} */
export function storageOf(given) {
  if (["getItem", "setItem", "removeItem"].some((name) => typeof given?.[name] !== "function")) return given;
  return {
    get: async (key) => (await given.getItem(key)) ?? null,
    set: async (key, value) => void (await given.setItem(key, value)),
    remove: async (key) => void (await given.removeItem(key)),
    keys: async (prefix) => {
      const all = given.getAllKeys ? await given.getAllKeys() : Object.keys(given);
      return all.filter((/** @type {string} */ key) => key.startsWith(prefix)).sort();
    },
  };
}

/** Refuses a part that lacks a function, before anything is done with it.
 * @param {Record<string, any>} parts */
export function checkParts(parts) {
  for (const of of ["network online listen", "lifecycle foreground listen", "storage get set remove keys"]) {
    const [name, ...members] = of.split(" ");
    if (parts[name] && !members.every((member) => typeof parts[name][member] === "function")) {
      throw new TypeError(`connect: ${name} must have ${members.join(", ")}`);
    }
  }
}

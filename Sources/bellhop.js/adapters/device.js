// Adapters that convert React Native's packages into the interfaces that a bell takes.

/** @typedef {import("../types").Network} Network */
/** @typedef {import("../types").Lifecycle} Lifecycle */

/** Converts React Native's NetInfo; a Network is returned unchanged.
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

/** Converts React Native's AppState; a Lifecycle is returned unchanged.
 * @param {any} given @returns {Lifecycle} */
export function lifecycleOf(given) {
  if (typeof given?.addEventListener !== "function") return given;
  // iOS reports "inactive" temporarily, while a call or the app switcher covers the app.
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

/** Converts React Native's AsyncStorage (or `localStorage`); a Storage is returned unchanged.
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

/** Rejects a part that lacks a function, before it is used.
 * @param {Record<string, any>} parts */
export function checkParts(parts) {
  for (const of of ["network online listen", "lifecycle foreground listen", "storage get set remove keys"]) {
    const [name, ...members] = of.split(" ");
    if (parts[name] && !members.every((member) => typeof parts[name][member] === "function")) {
      throw new TypeError(`connect: ${name} must have ${members.join(", ")}`);
    }
  }
}

// A storage that ends with the page, for tests and for environments without another.

/** @returns {import("../types").Storage} */
export function memoryStorage() {
  /** @type {Map<string, string>} */
  const values = new Map();
  return {
    get: async (key) => values.get(key) ?? null,
    set: async (key, value) => void values.set(key, value),
    remove: async (key) => void values.delete(key),
    keys: async (prefix) => [...values.keys()].filter((key) => key.startsWith(prefix)),
  };
}

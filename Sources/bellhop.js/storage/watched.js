// A storage that reports its failures to the app. Without the report, the app would not know that a queued write is lost
// when the page ends.

/** @param {import("../types").Storage} storage
 * @param {(error: unknown) => void} tell called with the error of the first failure, and with null once the storage works
 *   again
 * @returns {import("../types").Storage} */
export function watched(storage, tell) {
  let isFailing = false;
  /** @param {unknown} error */
  function note(error) {
    if (isFailing !== !!error) tell(error);
    isFailing = !!error;
  }
  return new Proxy(storage, {
    get: (of, /** @type {keyof typeof storage} */ name) => async (/** @type {any[]} */ ...given) => {
      try {
        const value = await /** @type {any} */ (of)[name](...given);
        note(null);
        return value;
      } catch (error) {
        note(error);
        throw error;
      }
    },
  });
}

// A storage that reports its failures to the app. Without the report, the app would not know that a queued write is lost
// when the page ends.
import type { Storage } from "../types.js";

/** @param report called with the error of the first failure, and with null once the storage works again */
export function watched(storage: Storage, report: (error: unknown) => void): Storage {
  let isFailing = false;
  function note(error: unknown) {
    if (isFailing !== !!error) report(error);
    isFailing = !!error;
  }
  return new Proxy(storage, {
    get: (of, name: string) => async (...given: unknown[]) => {
      try {
        const value = await (of as unknown as Record<string, (...given: unknown[]) => unknown>)[name](...given);
        note(null);
        return value;
      } catch (error) {
        note(error);
        throw error;
      }
    },
  });
}

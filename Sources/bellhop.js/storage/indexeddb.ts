// IndexedDB as a storage: all tabs and the worker of an origin share it, and it outlives them.
import type { JSONValue, Storage } from "../types.js";

export function indexedDBStorage(name = "bellhop"): Storage {
  let opening: Promise<IDBDatabase> | null = null;

  function open() {
    opening ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => void request.result.createObjectStore("values");
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const db = request.result;
        // The browser may close the database, to clear the site's data or while the page sleeps. The next use opens it
        // again.
        db.onclose = () => void (opening = null);
        db.onversionchange = () => {
          db.close();
          opening = null;
        };
        resolve(db);
      };
    });
    opening.catch(() => void (opening = null));
    return opening;
  }

  async function within(
    mode: IDBTransactionMode, use: (store: IDBObjectStore) => IDBRequest, durability?: IDBTransactionDurability,
  ): Promise<JSONValue> {
    const transaction = (await open()).transaction("values", mode, { durability });
    const request = use(transaction.objectStore("values"));
    await new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
    return request.result;
  }

  /** A connection that is lost is noticed only by its use. */
  const used: typeof within = (...what) => within(...what).catch(() => {
    opening = null;
    return within(...what);
  });

  return {
    get: async (key) => (await used("readonly", (values) => values.get(key))) ?? null,
    set: (key, value, durability) => used("readwrite", (values) => values.put(value, key), durability),
    remove: (key) => used("readwrite", (values) => values.delete(key)),
    keys: (prefix) => used("readonly", (values) =>
      values.getAllKeys(IDBKeyRange.bound(prefix, `${prefix}\uffff`))),
  };
}

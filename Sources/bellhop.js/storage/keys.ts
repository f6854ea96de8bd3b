// The keys and contents of the storage.
import type { Known } from "../machines/session.js";
import type { Item, JSONValue, Storage } from "../types.js";

/** Returns the name of what is stored of an identity at a service. No claim of a token is part of a name. */
export const nameOf = ({ url }: { url: string }, whose: string | null) => `bellhop 3 ${url} ${whose}`;

/** The identities that the device knows at a service, each under its own key. An identity is known until its user signs
 * out in any tab. */
export function knownOf(it: { url: string; storage: Storage }) {
  const { storage } = it;
  const at = (identity: string) => nameOf(it, `known/${identity}`);
  return {
    at,
    put: (known: Known) =>
      void storage.set(at(known.identity), JSON.stringify(known)).catch(() => {}),
    remove: (identity: string) => storage.remove(at(identity)).catch(() => {}).then(() => identity),
    load: (): Promise<Known[]> => loaded<Known>(storage, at("")).then((all) => all.filter(Boolean) as Known[]),
  };
}

/** Returns all values whose keys have the prefix. */
async function loaded<Value>(storage: Storage, prefix: string): Promise<(Value | null)[]> {
  const keys = await storage.keys(prefix).catch(() => []);
  return Promise.all(keys.map((key) => storage.get(key).catch(() => null).then(parsed)));
}

/** The queued writes, each under its own key, so that two tabs that add one at once do not overwrite each other. */
export function outboxOf(storage: Storage, scope: string) {
  const prefix = `${scope}outbox/`;
  const at = (item: Item) => `${prefix}${item.order}`;
  return {
    put: (item: Item) => storage.set(at(item), JSON.stringify(item), "strict"),
    remove: (item: Item) => storage.remove(at(item)).catch(() => {}),
    load: () => loaded<Item>(storage, prefix).then((items) => items.filter((item) => item?.key && item.order) as Item[]),
  };
}

/** Parses JSON; returns the text itself if it is not JSON. */
export function parsed(text: string | null): JSONValue {
  if (text === "") return null;
  try {
    return JSON.parse(text as string);
  } catch {
    return text;
  }
}

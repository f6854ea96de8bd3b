// The user of a bell: signs in and out, and opens the user's stream.
import { unconnected } from "../machines/connection.js";
import { nameOf, outboxOf } from "../storage/keys.js";
import { memoryStorage } from "../storage/memory.js";
import { holder } from "../tabs/holder.js";
import { tokens } from "../tokens.js";
import { input } from "./events.js";
import { add, failure } from "./writes.js";

/** @typedef {import("../internal").BellState} BellState */

/** Signs a user in; without a name, the user of the token.
 * @param {BellState} it @param {string | null} [name] */
export function signIn(it, name = it.options.user ?? null) {
  const isFirst = !it.token;
  leave(it, name);
  it.isSignedIn = true;
  it.owner = ownerOf();
  it.offline?.begin(name);
  const given = it.options.token;
  it.token = tokens({
    clock: it.clock, user: name, provider: ({ fresh }) => typeof given === "string" ? given : given({ fresh }),
    // The app returned a token of another identity without signing in: one user must not see another user's state.
    onUser: (other) => signIn(it, other),
  });
  // The new token is already in place, so that the stores fetch the new user's state.
  if (!isFirst) input(it, { type: "user", user: name, signedIn: true });
  begin(it);
}

/** @returns {import("../internal").Owner} */
export function ownerOf() {
  let start = () => {};
  const started = new Promise((/** @type {(value: void) => void} */ done) => void (start = done));
  return { scope: "", identity: null, start, started };
}

/** Deletes the user's stored state and returns the unsent writes to the app; null if the app wants to keep them.
 * @param {BellState} it */
export async function signOut(it) {
  const { offline, owner } = it;
  const may = offline?.mayLeave() ?? true;
  if (may !== true && (!await may || it.owner !== owner)) return null;
  // Other tabs of the user keep no state once this is removed.
  const gone = it.storage.remove(nameOf(it, it.user)).catch(() => {});
  const forgotten = offline?.forget(gone);
  const { scope } = owner;
  it.line?.forget();
  const bearer = it.token?.state().token ?? null;
  const drafts = [...it.pending.values()].map(({ item }) => item);
  leave(it, null);
  it.connection.set(unconnected("closed", { code: "signed_out" }));
  const left = [...it.attached].map((store) => store.leave?.(bearer));
  input(it, { type: "user", user: null, signedIn: false });
  // Waits for a write that is being stored.
  await it.adding;
  const stored = outboxOf(it.storage, scope);
  const items = scope ? await stored.load() : [];
  for (const item of items) await stored.remove(item);
  await Promise.all([gone, forgotten, ...left]);
  return [...items, ...drafts.filter(({ key }) => !items.some((item) => item.key === key))];
}

/** @param {BellState} it @param {string | null} next */
export function leave(it, next) {
  it.isSignedIn = false;
  it.offline?.end();
  stop(it);
  it.token?.close();
  it.owner.start();
  // Stored writes wait until their user is back.
  for (const { reject } of it.pending.values()) reject(failure("outbox.signed_out"));
  it.pending.clear();
  it.outbox.set({ waiting: 0 });
  it.streamId = "";
  it.user = next;
}

/** Closes the stream.
 * @param {BellState} it */
export function stop(it) {
  it.line?.close();
  it.line = undefined;
}

/** Opens the stream, once the identity is known.
 * @param {BellState} it */
export async function begin(it) {
  const { token, owner, storage } = it;
  if (!token) return;
  it.connection.set(unconnected("connecting"));
  // The identity decides which tabs share the stream, and it is part of the storage keys. Without a token, the last
  // known identity of the user that the app named is used.
  const isOver = () => owner !== it.owner || !it.isSignedIn || it.line;
  const given = await token.get();
  if (isOver()) return;
  const user = it.user ??= token.state().user;
  const last = nameOf(it, user);
  // A token without claims gets its user as the identity.
  const identity = token.state().identity ?? (user && (given ? user : await storage.get(last).catch(() => null)));
  if (isOver()) return;
  if (identity && user) storage.set(last, identity).catch(() => {});
  const name = nameOf(it, identity);
  const scope = owner.scope = identity ? `${name} ` : "";
  owner.identity = identity;
  await it.offline?.identify(identity);
  // New writes go behind the stored ones, whatever the clock says.
  for (const { order } of scope ? await outboxOf(storage, scope).load() : []) {
    it.order = Math.max(it.order, parseInt(order, 36));
  }
  if (!isOver()) open(it, token, name, owner);
}

/** Opens the stream of the owner.
 * @param {BellState} it @param {NonNullable<BellState["token"]>} token @param {string} name
 * @param {import("../internal").Owner} owner */
function open(it, token, name, owner) {
  const { user } = it;
  const { scope, identity } = owner;
  const own = {
    emit: it.receive,
    /** @param {{spent: string | null}} wanted */
    async provider({ spent }) {
      const given = await token.get(spent);
      // The first token came late: only now is the stream's identity known.
      const known = token.state().identity ?? (given && user);
      if (!known || known === identity || token !== it.token) return given;
      if (identity) signIn(it, it.user);
      else {
        stop(it);
        begin(it);
      }
      return null;
    },
  };
  /** @type {import("../internal").GroupParts["makeHolder"]} */
  const makeHolder = (own) => holder({
    ...it, user, identity, scope, rows: it.tables?.line,
    // The state of an unknown identity is not stored: the next identity could be another user.
    storage: identity ? it.storage : memoryStorage(),
    limits: { ...it.options.limits, online: it.network.online(), foreground: it.lifecycle.foreground() }, ...own,
  });
  const { tabs } = it.options;
  const shared = identity && typeof tabs === "function" && tabs({ ...it, user, identity, name, makeHolder, ...own });
  const line = it.line = shared || makeHolder(own);
  line.want({ topics: it.wanted.all(), tables: it.rows?.all() ?? [] });
  line.lifecycle(it.lifecycle.foreground());
  line.start();
  owner.start();
  // Writes accepted before the identity was known.
  for (const { item } of it.pending.values()) add(it, item, owner);
}

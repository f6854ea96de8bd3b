// The user of a bell: signs in and out, and opens the user's stream.
import { unconnected } from "../machines/connection.js";
import { personOf } from "../machines/identity.js";
import * as session from "../machines/session.js";
import { knownOf, nameOf, outboxOf } from "../storage/keys.js";
import { memoryStorage } from "../storage/memory.js";
import { holder } from "../tabs/holder.js";
import { noToken, tokens } from "../tokens.js";
import { input } from "./events.js";
import { add, failure } from "./writes.js";
import type { BellState, GroupParts, Owner } from "../internal.js";
import type { State } from "../machines/identity.js";
import type { SessionInput } from "../machines/inputs.js";
import type { Unstamped, TokenRequest } from "../types.js";

/** Signs a user in; without a name, the user of the token.
 * @param isShown whether what is kept of the user shows before the service has answered */
export function signIn(it: BellState, name: string | null = it.options.user ?? null, isShown = true) {
  const isFirst = !it.token;
  leave(it, name);
  it.isSignedIn = true;
  const owner = it.owner = ownerOf();
  it.offline?.begin();
  const given = it.options.token;
  it.token = tokens({
    clock: it.clock, name, provider: ({ fresh }) => typeof given === "string" ? given : given({ fresh }),
    identify: (token, read) => identify(it, owner, token, read),
    // The app returned a token of another identity without signing in: one user must not see another user's state.
    onUser: (other) => signIn(it, other, false),
  });
  // The new token is already in place, so that the stores fetch the new user's state.
  if (!isFirst) input(it, { type: "user", user: name, signedIn: true });
  if (isShown && name !== null) show(it, owner, { person: personOf(name) });
  begin(it);
}

/** Asks the service for the identity of a token, before anybody has the token. An answer holds for all tokens with the
 * same claims. */
async function identify(it: BellState, owner: Owner, token: string, read: Partial<State>) {
  const claims = read.claims ?? token;
  owner.read = read;
  if (it.known?.claims !== claims) {
    show(it, owner, read);
    const answer = await it.http.call("GET", "/v1/me", undefined, { Authorization: `Bearer ${token}` });
    const { status, body } = answer;
    if (status !== 200) throw noToken({ code: `http.${status}`, ...body, status }, { answer, token });
    it.known = { claims, ...body };
  }
  // The service may take the user from another claim than sub.
  read.subject = it.known?.userId ?? read.subject;
  return it.known!.identity;
}

/** The service opened a stream of another identity than it had said: its settings have changed meanwhile. */
export async function identifyAgain(it: BellState) {
  const { owner, token } = it;
  it.known = undefined;
  const identity = await identify(it, owner, token?.state().token ?? "", owner.read ?? {}).catch(() => null);
  if (identity && identity !== owner.identity && owner === it.owner) signIn(it, it.user, false);
}

/** Shows what the device has kept of an identity, if it knows exactly one of the token's holder. */
function show(
  it: BellState, owner: Owner, { holder = null, person = null }: { holder?: string | null; person?: string | null },
) {
  owner.shown = Promise.all([knownOf(it).load(), owner.shown]).then(([known]) =>
    void (owner === it.owner && step(it, owner, { type: "begin", holder, person, known })));
}

function step(it: BellState, owner: Owner, given: Unstamped<SessionInput>) {
  const { state, actions } = session.receive(owner.session, given as SessionInput);
  owner.session = state;
  for (const action of actions) {
    if (action.do === "keep") knownOf(it).put(action.known);
    else if (action.do !== "confirm") it.offline?.show(action.do === "open" ? action.identity : null);
  }
}

export function ownerOf(): Owner {
  let start = () => {};
  const started = new Promise((done: (value: void) => void) => void (start = done));
  return {
    scope: "", identity: null, start, started, session: session.initial(), shown: Promise.resolve(), read: null,
  };
}

/** Deletes the user's stored state and returns the unsent writes to the app; null if the app wants to keep them. */
export async function signOut(it: BellState) {
  const { offline, owner } = it;
  const may = offline?.mayLeave() ?? true;
  if (may !== true && (!await may || it.owner !== owner)) return null;
  const gone = forgetKnown(it, owner);
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

/** Removes the user's identities from the device's list. Other tabs of the user keep no state once this is done.
 * @returns the removed ones */
async function forgetKnown(it: BellState, owner: Owner): Promise<string[]> {
  const known = knownOf(it);
  const person = personOf(it.user);
  const all = (await known.load()).filter((one) => one.identity === owner.identity || person && one.person === person);
  return Promise.all(all.map(({ identity }) => known.remove(identity)));
}

export function leave(it: BellState, next: string | null) {
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

/** Closes the stream. */
export function stop(it: BellState) {
  it.line?.close();
  it.line = undefined;
}

/** Opens the stream, once the identity is known: it decides which tabs share the stream, and it names what is stored. If
 * the service cannot be reached, the identity that shows counts, and its tokens wait for the answer. */
export async function begin(it: BellState) {
  const { token, owner, storage } = it;
  if (!token) return;
  it.connection.set(unconnected("connecting"));
  const isOver = () => owner !== it.owner || !it.isSignedIn || it.line;
  await token.get();
  await owner.shown;
  if (isOver()) return;
  const { identity: digest, user } = token.state();
  const { holder = null } = owner.read ?? {};
  it.user ??= user;
  if (digest) step(it, owner, { type: "identity", identity: digest, holder, person: personOf(it.user) });
  const { identity } = owner.session;
  token.receive({ type: "assume", identity });
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

/** Opens the stream of the owner. */
function open(it: BellState, token: NonNullable<BellState["token"]>, name: string, owner: Owner) {
  const { user } = it;
  const { scope, identity } = owner;
  const own = {
    emit: it.receive,
    async provider({ spent, problem }: TokenRequest) {
      const given = await token.need(spent, problem);
      if (token.state().identity === identity || token !== it.token) return given;
      // The service answered late: only now is the stream's identity known.
      stop(it);
      begin(it);
      return null;
    },
  };
  const makeHolder: GroupParts["makeHolder"] = (own) => holder({
    ...it, user, identity, scope, rows: it.tables?.line,
    // The state of an unknown identity is not stored: the next identity could be another user.
    storage: identity ? it.storage : memoryStorage(),
    limits: { ...it.options.limits, isOnline: it.network.online(), isForeground: it.lifecycle.foreground() }, ...own,
  });
  const { tabs } = it.options;
  const shared = identity && typeof tabs === "function" && tabs({ ...it, user, identity, name, makeHolder, ...own });
  const line = it.line = shared || makeHolder(own);
  line.subscribe({ topics: it.topics.all(), tables: it.rows?.all() ?? [] });
  line.lifecycle(it.lifecycle.foreground());
  line.start();
  owner.start();
  // Writes accepted before the identity was known.
  for (const { item } of it.pending.values()) add(it, item, owner);
}

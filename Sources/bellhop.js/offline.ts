// Keeps the stores' state on the device, so that the next start shows it before the first byte of the network arrives:
// `connect({ url, token, user, offline: offline() })`. The service's answers take its place. Writes that wait in the
// outbox show as waiting again.
import { input } from "./bell/events.js";
import { unsent } from "./bell/writes.js";
import * as machine from "./machines/offline.js";
import { knownOf, nameOf, outboxOf, parsed } from "./storage/keys.js";
import { run } from "./stores/store.js";
import type { OfflineAction } from "./actions.js";
import type { BellState, Keepable, OfflineKeeper, PendingWrite, StoreBell } from "./internal.js";
import type { BellInput, OfflineInput, StoreInput } from "./machines/inputs.js";
import type { Answer, AnyFeature, Item, Offline, Running, Unstamped } from "./types.js";

export interface OfflineLimits {
  /** Maximum number of bytes of one user: 1,000,000. What was changed last stays. */
  bytesMax?: number;
  /** A store whose state is larger is not kept: 262,144. */
  entryBytesMax?: number;
  /** Maximum number of stores: 100. */
  entriesMax?: number;
  /** A state is written once changes rest for this long: 500 milliseconds … */
  restMs?: number;
  /** … or have continued for this long: 5,000 milliseconds. */
  restMsMax?: number;
}

export interface OfflineOptions {
  /** Called by `signOut` if writes wait, which it would delete. With `false` the user stays signed in, and `signOut`
   * resolves with null. */
  mayDiscard?(waiting: Item[]): boolean | Promise<boolean>;
  limits?: OfflineLimits;
}

/** `seen`: the keys of the writes that the store shows. */
interface Entry {
  place: string;
  name: string;
  names: unknown[];
  keep: Keepable;
  seen: Set<string>;
}

/** One identity's time on the device. */
interface Session {
  identity: string | null;
  scope: string;
  texts: Map<string, string>;
  isLoaded: boolean;
  isOver: boolean;
  isForgotten: boolean;
  isResumed: boolean;
  loading: Promise<void>;
  writing: Promise<void>;
  keeper: Running<machine.State, OfflineInput>;
}

/** The form of the kept states. A state in another form is dropped. */
const version = 1;
/** Inputs that are not commands of the app: their writes are repeated by the machine itself. */
const causes = ["answer", "event", "timer", "start", "user", "connection"];

/** Keeps the stores' state on the device, for `connect({ offline: offline() })`. */
export function offline(options: OfflineOptions = {}): Offline {
  return (it, bell) => new Keeper(it, bell, options);
}

class Keeper implements OfflineKeeper {
  /** The first requests wait for it. */
  ready = Promise.resolve();
  #release = () => {};
  /** By place. */
  #entries = new Map<string, Entry>();
  /** By the store's machine. */
  #byRun = new WeakMap<object, Entry>();
  /** The keys of the last answered writes. A concurrent read of the storage may still return them. */
  #done: string[] = [];
  #it;
  #bell;
  #options;
  #session: Session;

  constructor(it: BellState, bell: StoreBell, options: OfflineOptions) {
    this.#it = it;
    this.#bell = bell;
    this.#options = options;
    this.#session = this.#open(null);
    const receive = ({ type, foreground }: BellInput) =>
      type === "lifecycle" && !foreground && this.#flush();
    bell.attach({ receive, close: () => {} });
  }

  // MARK: Users

  /** Begins a user's time. */
  begin() {
    this.ready = new Promise((done) => void (this.#release = done));
    this.#session = this.#open(null);
  }

  /** Shows the kept state of an identity; null shows none. */
  show(identity: string | null) {
    const { isOver, identity: before } = this.#session;
    if (isOver || before === identity) return;
    this.#close();
    this.#session = this.#open(identity);
    // The state of other rights goes.
    if (before !== null) input(this.#it, { type: "user", user: this.#it.user, signedIn: true });
  }

  /** Shows the kept state of the identity of the token, and lets requests begin. */
  async identify(identity: string | null) {
    if (this.#session.isOver) return;
    this.show(identity);
    const release = this.#release;
    await this.#session.loading;
    release();
  }

  /** Ends a user's time on this device; the kept state stays for the next. */
  end() {
    this.#close();
    this.#release();
  }

  #close() {
    this.#flush();
    this.#session.isOver = true;
  }

  /** Asks the app whether the user may sign out while writes wait. */
  mayLeave() {
    const { mayDiscard } = this.#options;
    return mayDiscard ? this.#ask(mayDiscard) : true;
  }

  async #ask(mayDiscard: NonNullable<OfflineOptions["mayDiscard"]>) {
    const { scope } = this.#session;
    const stored = scope ? await outboxOf(this.#it.storage, scope).load() : [];
    const drafts = [...this.#it.pending.values()].map(({ item }) => item);
    const items = [...stored, ...drafts.filter(({ key }) => !stored.some((one) => one.key === key))];
    return items.length === 0 || mayDiscard(items);
  }

  /** Deletes what is kept of the user: of the present identity, and of the user's other identities.
   * @param gone the user's identities, once the device's list has them no more */
  async forget(gone: Promise<string[]>) {
    const session = this.#session;
    session.isOver = session.isForgotten = true;
    session.keeper.receive({ type: "forget" });
    const [identities] = await Promise.all([gone, session.writing]);
    if (session.scope) await this.#erase(`${session.scope}kept`);
    for (const identity of identities) await this.#erase(`${nameOf(this.#it, identity)} kept`);
  }

  /** Deletes an index and the states that it lists. */
  async #erase(index: string) {
    const { storage } = this.#it;
    for (const key of await storage.keys(index).catch(() => [])) await storage.remove(key).catch(() => {});
  }

  /** Whether the user has signed out, in this tab or another one. */
  async #isLeft(session: Session) {
    const { storage } = this.#it;
    return session.isForgotten || !await storage.get(knownOf(this.#it).at(`${session.identity}`)).catch(() => null);
  }

  #open(identity: string | null): Session {
    const scope = identity ? `${nameOf(this.#it, identity)} ` : "";
    const session: Session = {
      identity, scope, texts: new Map(), isLoaded: false, isOver: false, isForgotten: false,
      isResumed: false, loading: Promise.resolve(), writing: Promise.resolve(),
      keeper: run({ initial: () => machine.initial(this.#options.limits), receive: machine.receive }, undefined,
        this.#it.clock, (action: OfflineAction) => this.#perform(session, action)),
    };
    if (identity) session.loading = this.#load(session).catch(() => {});
    return session;
  }

  // MARK: Keeping

  async #load(session: Session) {
    const { storage } = this.#it;
    const entries = await this.#index(session) ?? {};
    const texts = await Promise.all(Object.keys(entries).map(async (place) =>
      [place, await storage.get(`${session.scope}kept/${place}`).catch(() => null)] as const));
    if (session !== this.#session || session.isOver) return;
    for (const [place, text] of texts) if (text) session.texts.set(place, text);
    session.isLoaded = true;
    for (const entry of this.#entries.values()) this.#restore(entry);
  }

  /** Returns the entries that are stored; null if nothing is, or if a later version has stored them. */
  async #index({ scope }: Session): Promise<machine.Entries | null> {
    const index = JSON.parse(await this.#it.storage.get(`${scope}kept`) ?? "null");
    return index?.version === version ? index.entries : null;
  }

  #restore({ place, keep }: Entry) {
    const text = this.#session.texts.get(place);
    if (text) keep.receive({ type: "restore", kept: parsed(text) });
  }

  #flush() {
    if (!this.#session.isOver) this.#session.keeper.receive({ type: "flush" });
  }

  #perform(session: Session, action: OfflineAction) {
    if (action.do === "measure") return this.#measure(session, action.places);
    if (action.do !== "write") return;
    session.writing = session.writing.then(() => this.#write(session, action)).catch(() => {});
  }

  /** Takes the states as they are now, and has the machine choose which are written. */
  #measure(session: Session, places: string[]) {
    const sizes: Record<string, number> = {};
    for (const place of places) {
      const entry = this.#entries.get(place);
      const kept = entry?.keep.kept();
      const text = kept ? JSON.stringify(kept) : "";
      if (!entry || text === (session.texts.get(place) ?? "")) continue;
      session.texts.set(place, text);
      sizes[place] = text ? new Blob([place, text]).size : 0;
    }
    if (Object.keys(sizes).length === 0) return;
    session.writing = session.writing.then(async () => {
      // Other tabs have stored states, too. If one of them has signed out, nothing is kept any more.
      const entries = await this.#index(session).catch(() => null) ?? {};
      if (await this.#isLeft(session)) return void (session.isLoaded = false);
      session.keeper.receive({ type: "loaded", entries });
      session.keeper.receive({ type: "sized", sizes });
    }).catch(() => {});
  }

  async #write(
    session: Session, { write, remove, entries }: { write: string[]; remove: string[]; entries: machine.Entries },
  ) {
    const { scope, texts } = session;
    const { storage } = this.#it;
    if (session.isForgotten) return;
    for (const place of remove) await storage.remove(`${scope}kept/${place}`);
    for (const place of write) await storage.set(`${scope}kept/${place}`, texts.get(place) ?? "");
    await storage.set(`${scope}kept`, JSON.stringify({ version, entries }));
    // Another tab that signs out removes the identity from the device's list first, and lists the keys afterwards. So it
    // has listed these keys, or the identity is gone by now.
    if (await this.#isLeft(session)) await this.#erase(`${scope}kept`);
  }

  // MARK: Stores and their writes

  /** Keeps the state of a new store, and shows what is kept of it. */
  adopt(name: string, names: unknown[], place: string, keep: Keepable | undefined) {
    if (!keep) return;
    const entry: Entry = { place, name, names, keep, seen: new Set() };
    this.#entries.set(place, entry);
    this.#byRun.set(keep.run, entry);
    keep.onChange(() => {
      const { isLoaded, isOver, keeper } = this.#session;
      if (isLoaded && !isOver && this.#entries.get(place) === entry) keeper.receive({ type: "changed", place });
    });
    if (this.#session.isLoaded && !this.#session.isOver) this.#restore(entry);
    this.#show(entry);
  }

  /** Lets go of a store that is closed. */
  release(place: string) {
    this.#flush();
    this.#entries.delete(place);
  }

  /** Returns what caused a write, so that the next start can show it as waiting.
   * @param of the store's machine */
  from(of: object, cause: Unstamped<StoreInput>, key: string) {
    const entry = this.#byRun.get(of);
    if (!entry || causes.includes(cause.type)) return undefined;
    entry.seen.add(key);
    const { place, name, names } = entry;
    return JSON.parse(JSON.stringify({ place, name, names, input: { now: this.#it.clock.now(), ...cause } }));
  }

  /** Shows the writes of earlier starts and of other tabs, once this tab receives their answers. */
  async resume() {
    const session = this.#session;
    const { storage, options, pending } = this.#it;
    const { features = {} } = options as { features?: Record<string, AnyFeature> };
    if (session.isResumed || session.isOver || !session.scope) return;
    session.isResumed = true;
    const items = await outboxOf(storage, session.scope).load();
    if (session !== this.#session || session.isOver) return;
    for (const item of items) {
      if (!item.from || !features[item.from.name] || this.#done.includes(item.key) || pending.has(item.key)) continue;
      const entry = { item, text: JSON.stringify({ method: item.method, path: item.path, body: item.body }) };
      const answer = new Promise<Answer>((resolve, reject) => Object.assign(entry, { resolve, reject }));
      pending.set(item.key, Object.assign(entry, { answer }) as unknown as PendingWrite);
      answer.catch(() => {});
      // The holder may have sent it before this tab listened: the same key gets the same answer.
      this.#it.line?.add(item);
    }
    for (const { item: { from } } of [...pending.values()]) {
      if (!from) continue;
      const feature = features[from.name];
      // A store of the bell is made at its first use.
      const stores = this.#bell as unknown as Record<string, (...names: unknown[]) => unknown>;
      const store = feature.isKeyed ? stores[from.name](...from.names) : stores[from.name];
      const entry = store ? this.#entries.get(from.place) : undefined;
      if (entry) this.#show(entry);
    }
  }

  /** Repeats in a store the commands whose writes wait. */
  #show({ place, keep, seen }: Entry) {
    for (const { item: { key, from }, answer } of [...this.#it.pending.values()]) {
      if (from?.place !== place || seen.has(key)) continue;
      seen.add(key);
      const resume = () => answer.catch(unsent);
      keep.receive({ ...from.input, resume });
    }
  }

  answered(key: string) {
    this.#done = [...this.#done.slice(-999), key];
  }
}

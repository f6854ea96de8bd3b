// One stream for all tabs of a user. The tab with the Web Lock holds the stream and forwards to the others. When the
// holder dies, however it dies, the lock immediately passes to the next tab. A worker, if there is one, is a holder
// without a page.
//
// One BroadcastChannel carries messages for all. Each tab has its own channel for messages between it and the holder,
// and new tabs announce themselves on the holder's channel. On a shared channel, each message of fifty tabs would wake
// the other forty-nine.
import { Leader } from "./leader.js";
import { Ring } from "./ring.js";
import type { Entry, GroupParts, HolderMessage, Line, Locks, NetworkState, TabMessage, Unsigned } from "../internal.js";
import type { Item, Interest } from "../types.js";

/** A holder that the browser has suspended keeps its lock and is silent. A visible tab pings it at this interval,
 * and steals the lock if it does not answer. */
const everyMs = 10_000;
const answerMs = 2000;
/** A tab that lost the lock waits this long before it queues again; two tabs that cannot hold it would loop
 * otherwise. */
const againMs = 1000;

const gap = { name: "stream:resync", data: { reason: "gap" }, id: "" };

export const group = (parts: GroupParts) => new Group(parts);

class Group implements Line {
  #ring = new Ring();
  #leaving = new AbortController();
  #own: Interest = { topics: [], tables: [], foreground: false };
  /** The present holder, and the number of its last received message; null until it has welcomed this tab. */
  #boss: { id: string; n: number | null; ahead: number } = { id: "", n: null, ahead: 0 };
  /** Unanswered writes of this tab. Each new holder receives all of them, because the previous one may have missed
   * some. */
  #unanswered = new Map<string, Item>();
  /** The holder's side, while this tab has the lock. */
  #leader: Leader | null = null;
  #isClosed = false;
  #stopWatch = () => {};
  #parts;
  #locks;
  #Channel;
  #all;
  #line;

  constructor(parts: GroupParts) {
    this.#parts = parts;
    this.#locks = parts.locks ?? (
      (globalThis as unknown) as { navigator: { locks: Locks } }).navigator.locks;
    this.#Channel = parts.Channel ?? BroadcastChannel;
    this.#all = new this.#Channel(parts.name);
    this.#line = new this.#Channel(`${parts.name} ${parts.tab}`);
    for (const channel of [this.#all, this.#line]) {
      channel.onmessage = ({ data }) => this.#isClosed || data.send || this.#receive(data);
    }
  }

  async start() {
    const { name, tab, isTab } = this.#parts;
    await new Promise((got) => {
      this.#locks.request(`${name} ${tab}`, {}, () => {
        got(0);
        return this.#end();
      }).catch(got);
      if (!isTab) got(0);
    });
    if (this.#isClosed) return;
    if (isTab) await this.#join();
    else this.#queue();
  }

  subscribe({ lastEventId, ...changes }: Partial<Interest> & { lastEventId?: string }) {
    Object.assign(this.#own, changes);
    // A tab that is not welcomed yet sends all of this with its hello.
    this.#send({ send: "subscribe", changes, lastEventId });
    if (this.#boss.id !== "" && changes.foreground !== undefined) this.#watch(0);
  }

  network(network: NetworkState) {
    this.#send({ send: "network", network });
  }

  lifecycle(foreground: boolean) {
    this.subscribe({ foreground });
  }

  open() {
    this.#send({ send: "open" });
  }

  forget() {
    this.#send({ send: "forget" });
  }

  add(item: Item) {
    this.#unanswered.set(item.key, item);
    this.#send({ send: "add", item });
  }

  close() {
    if (this.#isClosed) return;
    this.#send({ send: "bye" });
    this.#isClosed = true;
    this.#stopWatch();
    this.#leader?.close();
    this.#leaving.abort();
    for (const channel of [this.#all, this.#line]) channel.close();
  }

  /** Sends to the holder, once it has welcomed this tab. */
  #send(message: Unsigned<TabMessage>) {
    if (this.#isClosed) return;
    const signed = { ...message, from: this.#parts.tab } as TabMessage;
    if (this.#leader) this.#leader.receive(signed);
    else if (this.#boss.n !== null) this.#line.postMessage(signed);
  }

  /** Announces this tab to the holder.
   * @param at the position of the holder. A tab that is ahead begins there, and knows which events it has */
  #hello(at?: string) {
    if (this.#isClosed) return;
    const { name, tab, isTab } = this.#parts;
    const last = at && this.#ring.has(at) ? at : this.#ring.lastId;
    const message: TabMessage = { send: "hello", isTab, last, ...this.#own, from: tab };
    if (this.#leader) return this.#leader.receive(message);
    const door = new this.#Channel(`${name} door`);
    door.postMessage(message);
    door.close();
  }

  #receive(message: HolderMessage) {
    if (message.type === "holder") {
      this.#boss = { id: message.from, n: null, ahead: 0 };
      this.#hello(message.at);
    } else if (message.from === this.#boss.id || message.type === "welcome") this.#heed(message);
    if (message.from === this.#boss.id) this.#watch(this.#parts.watch?.everyMs ?? everyMs);
  }

  #heed(message: Exclude<HolderMessage, { type: "holder" }>) {
    const { provider, emit, tab } = this.#parts;
    switch (message.type) {
      case "pong": return;
      case "welcome": return this.#enter(message);
      case "ask":
        return void provider?.(message).then((token) => ({ token }), ({ problem }) => ({ token: null, problem }))
          .then((answer) => this.#send({ ...answer, send: "token", ask: message.ask }));
    }
    const { n } = message;
    // Messages before the welcome: it uses another channel, and may arrive after messages that were sent later.
    if (this.#boss.n === null) return void (this.#boss.ahead = n);
    if (n <= this.#boss.n) return;
    if (n !== this.#boss.n + 1) return this.#hello();
    this.#boss.n = n;
    if (message.type === "event") return this.#take(message.entry);
    const { delivery } = message;
    if (delivery.type === "answered") this.#unanswered.delete(delivery.item.key);
    emit(delivery, delivery.for === undefined || delivery.for === tab);
  }

  #enter({ from, n, at, missed, isLost, status, waiting, isWorker }: Extract<HolderMessage, { type: "welcome" }>) {
    const { emit, startWorker } = this.#parts;
    const ahead = from === this.#boss.id ? this.#boss.ahead : 0;
    this.#boss = { id: from, n, ahead: 0 };
    for (const entry of missed) this.#take(entry);
    if (isLost) emit({ type: "event", event: gap }, true);
    if (isLost || this.#ring.lastId === "") this.#ring.move(at);
    emit({ type: "status", status }, true);
    emit({ type: "waiting", count: waiting }, true);
    if (isWorker) startWorker?.(() => {});
    for (const item of this.#unanswered.values()) this.#send({ send: "add", item });
    if (ahead > n) this.#hello();
  }

  #take(entry: Entry) {
    if (this.#ring.take(entry) && entry.event) this.#parts.emit({ type: "event", event: entry.event }, true);
  }

  /** Resolves when this tab leaves. */
  #end() {
    return new Promise((done) => this.#leaving.signal.addEventListener("abort", done));
  }

  /** Queues for the lock for as long as it takes, or steals it. */
  #queue(how: { steal: boolean } | { signal: AbortSignal } = { signal: this.#leaving.signal }) {
    const { name, clock } = this.#parts;
    let held: Leader | null = null;
    let isOver = false;
    this.#locks.request(name, how, async () => {
      if (this.#isClosed || this.#leader || isOver) return;
      this.#leader = held = new Leader({
        ...this.#parts, locks: this.#locks, Channel: this.#Channel, all: this.#all, ring: this.#ring,
        receive: (message) => this.#receive(message),
      });
      held.start();
      await this.#end();
    }).catch(() => {
      isOver = true;
      if (this.#isClosed) return;
      clock.after(againMs, () => this.#isClosed || this.#queue());
      // Another tab stole the lock while this one was suspended, and has opened another stream.
      if (!held || this.#leader !== held) return;
      held.close();
      this.#leader = null;
      this.#boss = { id: "", n: null, ahead: 0 };
      this.#hello();
    });
  }

  /** Pings the holder after a time of silence. */
  #watch(ms: number) {
    const { isTab, clock, watch } = this.#parts;
    this.#stopWatch();
    if (!isTab || !this.#own.foreground || this.#leader || this.#isClosed) return;
    const wait = watch?.answerMs ?? answerMs;
    const ask = () => this.#send({ send: "ping" });
    this.#stopWatch = clock.after(ms, () => {
      ask();
      this.#stopWatch = clock.after(wait, () => {
        // This tab itself may have been busy: messages that arrived meanwhile are handled before the next timer.
        ask();
        this.#stopWatch = clock.after(wait, () => this.#queue({ steal: true }));
      });
    });
  }

  async #join() {
    const { name, startWorker } = this.#parts;
    const isHeld = (await this.#locks.query()).held?.some((lock) => lock.name === name);
    if (this.#isClosed) return;
    let isQueued = false;
    const enterQueue = () => {
      if (!isQueued && !this.#isClosed) this.#queue();
      isQueued = true;
    };
    if (isHeld || !startWorker) enterQueue();
    else startWorker(enterQueue);
    this.#hello();
    if (isHeld) this.#watch(0);
  }
}

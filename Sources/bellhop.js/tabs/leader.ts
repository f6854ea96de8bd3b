// The holder's side of the tabs of a user: it knows the tabs, unites their wishes, and passes the stream on to them.
import type { Given, HolderMessage, LeaderParts, TabMessage, Unsigned } from "../internal.js";
import type { Member, Refusal, Delivery, TokenRequest } from "../types.js";

/** How long a tab may take to answer a token request, before another tab is asked. */
const askMs = 5000;
/** How long a new holder without events of its own waits for the positions of the others. */
const gatherMs = 50;

export class Leader {
  #members = new Map<string, Member>();
  /** The token requests without an answer. */
  #asked = new Map<string, { of: string; answer: (given: Given) => void }>();
  #asks = 0;
  /** The number of the last message to all. */
  #n = 0;
  #waiting = 0;
  #isStarted = false;
  #isOver = false;
  #arrive = () => {};
  #arrival: Promise<void> = new Promise((done) => void (this.#arrive = done));
  #parts;
  #door;
  #holder;

  constructor(parts: LeaderParts) {
    this.#parts = parts;
    this.#door = new parts.Channel(`${parts.name} door`);
    this.#holder = parts.makeHolder({
      emit: (delivery) => this.#deliver(delivery), provider: (request) => this.#ask(request),
    });
  }

  async start() {
    const { ring, clock } = this.#parts;
    this.#door.onmessage = ({ data }) => this.receive(data);
    this.#post({ type: "holder", at: ring.lastId });
    // The worker waits for a tab, because only tabs have tokens.
    await this.#arrival;
    if (ring.lastId === "") await new Promise((done) => clock.after(gatherMs, () => done(0)));
    if (this.#isOver) return;
    this.#isStarted = true;
    await this.#holder.start(ring.lastId);
  }

  close() {
    this.#isOver = true;
    this.#door.close();
    for (const { gone, line } of this.#members.values()) {
      gone.abort();
      line?.close();
    }
    this.#holder.close();
  }

  /** @param message of a tab, also of this one */
  receive(message: TabMessage) {
    if (this.#isOver) return;
    const { from } = message;
    switch (message.send) {
      case "hello":
        this.#note(message);
        return this.#welcome(message);
      case "token": return this.#asked.get(message.ask)?.answer(message);
      case "bye": return this.#forget(from);
      case "ping": return this.#post({ type: "pong" }, from);
      case "add": return this.#holder.add(message.item);
      case "network": return this.#holder.network(message.network);
      case "open": return this.#holder.open();
      case "forget": return this.#holder.forget();
      case "subscribe": return this.#subscribe(message);
    }
  }

  /** Sends to one tab, or to all, including this one. */
  #post(message: Unsigned<HolderMessage>, to?: string) {
    if (this.#isOver) return;
    const { tab, all, receive } = this.#parts;
    const signed = { ...message, from: tab } as HolderMessage;
    if (to === undefined) all.postMessage(signed);
    if (to === undefined || to === tab) receive(signed);
    else this.#members.get(to)?.line?.postMessage(signed);
  }

  #deliver(delivery: Delivery) {
    const n = this.#n += 1;
    if (delivery.type === "event") {
      return this.#post({ type: "event", n, entry: { id: delivery.event.id, event: delivery.event } });
    }
    if (delivery.type === "cursor") return this.#post({ type: "event", n, entry: { id: delivery.id, event: null } });
    if (delivery.type === "waiting") this.#waiting = delivery.count;
    // An answer is for the tab that asked; if that tab is gone, for a visible one.
    const answered = delivery.type === "answered" ? { for: this.#among(delivery.item.tab ?? "") } : {};
    this.#post({ type: "delivery", n, delivery: { ...delivery, ...answered } });
  }

  /** Returns the tabs, the visible ones first. */
  #tabs() {
    return [...this.#members].filter(([, member]) => member.isTab)
      .sort(([, a], [, b]) => Number(b.foreground) - Number(a.foreground));
  }

  #among(tab: string) {
    return this.#members.has(tab) ? tab : this.#tabs()[0]?.[0];
  }

  /** Asks this tab for a token, then others; a worker has no token of its own. Rejects with the problem of the last tab. */
  async #ask(request: TokenRequest): Promise<string | null> {
    const { tab, clock } = this.#parts;
    let problem: Refusal | undefined;
    for (const [to] of this.#tabs().sort(([one], [other]) => Number(other === tab) - Number(one === tab))) {
      const id = String((this.#asks += 1));
      const given = await new Promise((resolve: (given: Given) => void) => {
        const stop = clock.after(askMs, () => resolve({ token: null }));
        const answer = (given: Given) => {
          stop();
          resolve(given);
        };
        this.#asked.set(id, { of: to, answer });
        this.#post({ ...request, type: "ask", ask: id }, to);
      });
      this.#asked.delete(id);
      if (given.token !== null) return given.token;
      problem = given.problem ?? problem;
    }
    throw Object.assign(new Error("no tab has a token"), { problem: problem ?? { code: "token.none" } });
  }

  #unite(lastEventId?: string) {
    const members = this.#tabs().map(([, member]) => member);
    this.#holder.subscribe({
      topics: [...new Set(members.flatMap(({ topics }) => topics))],
      tables: members.flatMap(({ tables }) => tables),
      lastEventId,
    });
  }

  #forget(from: string) {
    const member = this.#members.get(from);
    if (!member) return;
    this.#members.delete(from);
    member.gone.abort();
    member.line?.close();
    for (const { of, answer } of this.#asked.values()) if (of === from) answer({ token: null });
    this.#unite();
    this.#look(false);
  }

  /** A tab that opens or becomes visible wakes a waiting connection; the stream is in the background when all tabs are. */
  #look(isLookedAt: boolean) {
    this.#holder.lifecycle(isLookedAt || [...this.#members.values()].some(({ foreground }) => foreground));
  }

  #note({ from, isTab, topics, tables, foreground }: Extract<TabMessage, { send: "hello" }>) {
    const { name, tab, locks, Channel } = this.#parts;
    const known = this.#members.get(from);
    const gone = known?.gone ?? new AbortController();
    const line: BroadcastChannel | null = from === tab ? null : known?.line ?? new Channel(`${name} ${from}`);
    if (line) line.onmessage = ({ data }) => data.send && this.receive(data);
    this.#members.set(from, { isTab, topics, tables, foreground, line, gone });
    this.#unite();
    if (!known) this.#look(foreground);
    // An earlier page of the tab may have stored writes without announcing them.
    if (!known && this.#isStarted) this.#holder.load();
    if (isTab) this.#arrive();
    // Each tab holds its own lock; obtaining that lock shows that the tab is gone.
    if (!known && line) {
      locks.request(`${name} ${from}`, { signal: gone.signal }, () => this.#forget(from)).catch(() => {});
    }
  }

  #welcome({ from, last }: Extract<TabMessage, { send: "hello" }>) {
    const { ring, isTab, tab } = this.#parts;
    if (!this.#isStarted && ring.lastId === "") ring.move(last);
    const missed = ring.after(last);
    this.#post({
      type: "welcome", n: this.#n, at: ring.lastId, isLost: last !== "" && missed === null,
      status: this.#holder.status(), waiting: this.#waiting, isWorker: !isTab, missed: from === tab ? [] : missed ?? [],
    }, from);
  }

  #subscribe({ from, changes, lastEventId }: Extract<TabMessage, { send: "subscribe" }>) {
    const member = this.#members.get(from);
    if (!member) return;
    Object.assign(member, changes);
    this.#unite(lastEventId);
    if (changes.foreground !== undefined) this.#look(changes.foreground);
  }
}

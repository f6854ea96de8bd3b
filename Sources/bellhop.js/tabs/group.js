// One stream for all tabs of a user. The tab with the Web Lock holds the stream and forwards to the others. When the
// holder dies, however it dies, the lock immediately passes to the next tab. A worker, if there is one, is a holder
// without a page.
//
// One BroadcastChannel carries messages for all. Each tab has its own channel for messages between it and the holder,
// and new tabs announce themselves on the holder's channel. On a shared channel, each message of fifty tabs would wake
// the other forty-nine.

/** Number of events that each tab keeps, for the next holder to pass on to tabs that missed some. */
const ringMax = 512;
/** How long a tab may take to answer a token request, before another tab is asked. */
const askMs = 5000;
/** How long a new holder without events of its own waits for the positions of the others. */
const gatherMs = 50;
/** A holder that the browser has suspended keeps its lock and is silent. A visible tab pings it at this interval,
 * and steals the lock if it does not answer. */
const everyMs = 10_000;
const answerMs = 2000;
/** A tab that lost the lock waits this long before it queues again; two tabs that cannot hold it would loop
 * otherwise. */
const againMs = 1000;

const gap = { name: "stream:resync", data: { reason: "gap" }, id: "" };

/**
 * @typedef {import("../types").Saying} Saying
 * @typedef {import("../types").Member} Member
 */

/** @param {import("../internal").GroupParts} parts */
export function group({ name, tab, isTab, clock, makeHolder, emit, ...parts }) {
  const locks = parts.locks ?? /** @type {any} */ (globalThis).navigator.locks;
  const Channel = parts.Channel ?? BroadcastChannel;
  const all = new Channel(name);
  const line = new Channel(`${name} ${tab}`);
  const leaving = new AbortController();
  /** @type {import("../types").Want} */
  const own = { topics: [], tables: [], foreground: false };
  /** Received events, oldest first; a position without an event has `event: null`.
   * @type {{id: string, event: any}[]} */
  let ring = [];
  let lastId = "";
  /** The present holder, and the number of its last received message; null until it has welcomed this tab.
   * @type {{id: string, n: number | null, ahead: number}} */
  let boss = { id: "", n: null, ahead: 0 };
  /** Unanswered writes of this tab. Each new holder receives all of them, because the previous one may have missed
   * some.
   * @type {Map<string, import("../types").Item>} */
  const unanswered = new Map();
  /** @type {ReturnType<typeof hold> | null} */
  let mine = null;
  let isClosed = false;
  let stopWatch = () => {};

  for (const channel of [all, line]) {
    channel.onmessage = (/** @type {any} */ { data }) => isClosed || data.tell || hear(data);
  }

  // MARK: The tab

  // Sends to the holder, once it has welcomed this tab.
  /** @param {any} message */
  function tell(message) {
    if (isClosed) return;
    if (mine) mine.hear({ ...message, from: tab });
    else if (boss.n !== null) line.postMessage({ ...message, from: tab });
  }

  /** @param {string} [at] where the holder is: who has heard more begins there too, and knows what it has */
  function hello(at) {
    if (isClosed) return;
    const last = at && ring.some(({ id }) => id === at) ? at : lastId;
    const message = { tell: "hello", isTab, last, ...own, from: tab };
    if (mine) return void mine.hear(message);
    const door = new Channel(`${name} door`);
    door.postMessage(message);
    door.close();
  }

  /** @param {any} message of a holder */
  function hear(message) {
    if (message.say === "holder") {
      boss = { id: message.from, n: null, ahead: 0 };
      hello(message.at);
    } else if (message.from === boss.id || message.say === "welcome") heed(message);
    if (message.from === boss.id) watch(parts.watch?.everyMs ?? everyMs);
  }

  /** @param {any} message */
  function heed(message) {
    switch (message.say) {
      case "pong": return;
      case "welcome": return enter(message);
      case "ask":
        return void parts.provider?.({ spent: message.spent }).catch(() => null)
          .then((token) => tell({ tell: "token", ask: message.ask, token }));
    }
    // Messages before the welcome: it uses another channel, and may arrive after messages that were sent later.
    if (boss.n === null) return void (boss.ahead = message.n);
    if (message.n <= boss.n) return;
    if (message.n !== boss.n + 1) return hello();
    boss.n = message.n;
    if (message.say === "event") return take(message.entry);
    if (message.saying.say === "answered") unanswered.delete(message.saying.item.key);
    emit(message.saying, message.saying.for === undefined || message.saying.for === tab);
  }

  /** @param {any} message */
  function enter(message) {
    const ahead = message.from === boss.id ? boss.ahead : 0;
    boss = { id: message.from, n: message.n, ahead: 0 };
    for (const entry of message.missed) take(entry);
    if (message.isLost) emit({ say: "event", event: gap }, true);
    if (message.isLost || lastId === "") move(message.at);
    emit({ say: "status", status: message.status }, true);
    emit({ say: "waiting", count: message.waiting }, true);
    if (message.isWorker) parts.startWorker?.(() => {});
    for (const item of unanswered.values()) tell({ tell: "add", item });
    if (ahead > message.n) hello();
  }

  /** @param {{id: string, event: any}} entry */
  function take({ id, event }) {
    // Skips events already received from the previous holder. Notices of a stream (`stream:…`) are always new.
    const isKnown = id !== "" && ring.some((entry) => entry.id === id);
    if (isKnown && !event?.name.startsWith("stream:")) return;
    ring.push({ id, event });
    if (ring.length > ringMax) ring = ring.slice(-ringMax / 2);
    if (id !== "") lastId = id;
    if (event) emit({ say: "event", event }, true);
  }

  /** @param {string} id */
  function move(id) {
    if (id === "" || id === lastId) return;
    ring.push({ id, event: null });
    lastId = id;
  }

  // MARK: The holder

  function hold() {
    /** @type {Map<string, Member>} */
    const members = new Map();
    /** @type {Map<string, {of: string, answer: (token: string | null) => void}>} */
    const asked = new Map();
    const door = new Channel(`${name} door`);
    let n = 0;
    let waiting = 0;
    let isStarted = false;
    let isOver = false;
    let asks = 0;
    let arrive = () => {};
    const arrival = new Promise((done) => void (arrive = () => done(0)));
    const holder = makeHolder({ emit: say, provider: ask });

    // Sends to one tab, or to all, including this one.
    /** @param {any} message @param {string} [to] */
    function post(message, to) {
      if (isClosed || isOver) return;
      const signed = { ...message, from: tab };
      if (to === undefined) all.postMessage(signed);
      if (to === undefined || to === tab) hear(signed);
      else members.get(to)?.line?.postMessage(signed);
    }

    /** @param {Saying} saying */
    function say(saying) {
      n += 1;
      if (saying.say === "event") post({ say: "event", n, entry: { id: saying.event.id, event: saying.event } });
      else if (saying.say === "cursor") post({ say: "event", n, entry: { id: saying.id, event: null } });
      else {
        if (saying.say === "waiting") waiting = saying.count;
        // An answer is for the tab that asked; if that tab is gone, for a visible one.
        const answered = saying.say === "answered" ? { for: among(saying.item.tab ?? "") } : {};
        post({ say: "saying", n, saying: { ...saying, ...answered } });
      }
    }

    const looked = () => [...members].filter(([, member]) => member.isTab)
      .sort(([, a], [, b]) => Number(b.foreground) - Number(a.foreground));
    const among = (/** @type {string} */ wanted) => members.has(wanted) ? wanted : looked()[0]?.[0];

    // Asks this tab for a token, then others; a worker has no token of its own.
    /** @param {{spent: string | null}} wanted @returns {Promise<string | null>} */
    async function ask({ spent }) {
      for (const [to] of looked().sort(([one], [other]) => Number(other === tab) - Number(one === tab))) {
        const id = String((asks += 1));
        const token = await new Promise((/** @type {(token: string | null) => void} */ resolve) => {
          const stop = clock.after(askMs, () => resolve(null));
          const answer = (/** @type {string | null} */ given) => {
            stop();
            resolve(given);
          };
          asked.set(id, { of: to, answer });
          post({ say: "ask", ask: id, spent }, to);
        });
        asked.delete(id);
        if (token !== null) return token;
      }
      return null;
    }

    /** @param {string} [lastEventId] */
    function unite(lastEventId) {
      const wants = looked().map(([, member]) => member);
      holder.want({
        topics: [...new Set(wants.flatMap(({ topics }) => topics))],
        tables: wants.flatMap(({ tables }) => tables),
        lastEventId,
      });
    }

    /** @param {string} from */
    function forget(from) {
      const member = members.get(from);
      if (!member) return;
      members.delete(from);
      member.gone.abort();
      member.line?.close();
      for (const { of, answer } of asked.values()) if (of === from) answer(null);
      unite();
      look(false);
    }

    // A tab that opens or becomes visible wakes a waiting connection; the stream is in the background when all tabs
    // are.
    /** @param {boolean} isLookedAt */
    function look(isLookedAt) {
      holder.lifecycle(isLookedAt || [...members.values()].some(({ foreground }) => foreground));
    }

    /** @param {any} message */
    function note({ from, isTab: isOther, topics, tables, foreground }) {
      const known = members.get(from);
      const gone = known?.gone ?? new AbortController();
      const other = from === tab ? null : known?.line ?? new Channel(`${name} ${from}`);
      if (other) other.onmessage = (/** @type {any} */ { data }) => data.tell && hearTab(data);
      members.set(from, { isTab: isOther, topics, tables, foreground, line: other, gone });
      unite();
      if (!known) look(foreground);
      // An earlier page of the tab may have stored writes without announcing them.
      if (!known && isStarted) holder.load();
      if (isOther) arrive();
      // Each tab holds its own lock; obtaining that lock shows that the tab is gone.
      if (!known && other) {
        locks.request(`${name} ${from}`, { signal: gone.signal }, () => forget(from)).catch(() => {});
      }
    }

    /** @param {any} message */
    function welcome({ from, last }) {
      if (!isStarted && lastId === "") move(last);
      const place = last === "" ? -1 : ring.map(({ id }) => id).lastIndexOf(last);
      post({
        say: "welcome", n, at: lastId, isLost: last !== "" && place < 0, status: holder.status(), waiting,
        isWorker: !isTab, missed: place < 0 || from === tab ? [] : ring.slice(place + 1),
      }, from);
    }

    /** @param {any} message */
    function hearTab(message) {
      if (isClosed || isOver) return;
      const { tell: told, from } = message;
      switch (told) {
        case "hello":
          note(message);
          return welcome(message);
        case "token": return asked.get(message.ask)?.answer(message.token);
        case "bye": return forget(from);
        case "ping": return post({ say: "pong" }, from);
        case "add": return holder.add(message.item);
        case "network": return holder.network(message.network);
        case "open": return holder.open();
        case "forget": return holder.forget();
      }
      const member = members.get(from);
      if (told !== "want" || !member) return;
      Object.assign(member, message.want);
      unite(message.lastEventId);
      if (message.want.foreground !== undefined) look(message.want.foreground);
    }

    return {
      hear: hearTab,
      async start() {
        door.onmessage = (/** @type {any} */ { data }) => hearTab(data);
        post({ say: "holder", at: lastId });
        // The worker waits for a tab, because only tabs have tokens.
        await arrival;
        if (lastId === "") await new Promise((done) => clock.after(gatherMs, () => done(0)));
        if (isClosed || isOver) return;
        isStarted = true;
        await holder.start(lastId);
      },
      close() {
        isOver = true;
        door.close();
        for (const { gone, line: other } of members.values()) {
          gone.abort();
          other?.close();
        }
        holder.close();
      },
    };
  }

  /** Queues for the lock for as long as it takes, or steals it.
   * @param {{steal: boolean} | {signal: AbortSignal}} [how] */
  function queue(how = { signal: leaving.signal }) {
    /** @type {typeof mine} */
    let held = null;
    let isOver = false;
    locks.request(name, how, async () => {
      if (isClosed || mine || isOver) return;
      mine = held = hold();
      mine.start();
      await new Promise((done) => leaving.signal.addEventListener("abort", done));
    }).catch(() => {
      isOver = true;
      if (isClosed) return;
      clock.after(againMs, () => isClosed || queue());
      // Another tab stole the lock while this one was suspended, and has opened another stream.
      if (!held || mine !== held) return;
      held.close();
      mine = null;
      boss = { id: "", n: null, ahead: 0 };
      hello();
    });
  }

  /** Pings the holder after a time of silence.
   * @param {number} ms */
  function watch(ms) {
    stopWatch();
    if (!isTab || !own.foreground || mine || isClosed) return;
    const wait = parts.watch?.answerMs ?? answerMs;
    const ask = () => tell({ tell: "ping" });
    stopWatch = clock.after(ms, () => {
      ask();
      stopWatch = clock.after(wait, () => {
        // This tab itself may have been busy: messages that arrived meanwhile are handled before the next timer.
        ask();
        stopWatch = clock.after(wait, () => queue({ steal: true }));
      });
    });
  }

  async function join() {
    const held = (await locks.query()).held.some((/** @type {any} */ lock) => lock.name === name);
    if (isClosed) return;
    let isQueued = false;
    const enterQueue = () => {
      if (!isQueued && !isClosed) queue();
      isQueued = true;
    };
    if (held || !parts.startWorker) enterQueue();
    else parts.startWorker(enterQueue);
    hello();
    if (held) watch(0);
  }

  /** @param {Partial<typeof own> & {lastEventId?: string}} wanted */
  function wish({ lastEventId, ...want }) {
    Object.assign(own, want);
    // A tab that is not welcomed yet sends all of this with its hello.
    tell({ tell: "want", want, lastEventId });
    if (boss.id !== "" && want.foreground !== undefined) watch(0);
  }

  return {
    async start() {
      await new Promise((got) => {
        locks.request(`${name} ${tab}`, () => new Promise((done) => {
          got(0);
          leaving.signal.addEventListener("abort", done);
        })).catch(got);
        if (!isTab) got(0);
      });
      if (isClosed) return;
      if (isTab) await join();
      else queue();
    },
    want: wish,
    network: (/** @type {any} */ network) => tell({ tell: "network", network }),
    lifecycle: (/** @type {boolean} */ foreground) => wish({ foreground }),
    open: () => tell({ tell: "open" }),
    forget: () => tell({ tell: "forget" }),
    add(/** @type {import("../types").Item} */ item) {
      unanswered.set(item.key, item);
      tell({ tell: "add", item });
    },
    close() {
      if (isClosed) return;
      tell({ tell: "bye" });
      isClosed = true;
      stopWatch();
      mine?.close();
      leaving.abort();
      for (const channel of [all, line]) channel.close();
    },
  };
}

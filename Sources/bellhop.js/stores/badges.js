import { afterMs } from "../calls.js";
import * as machine from "../machines/counts.js";
import * as reconciliation from "../machines/reconciliation.js";
import { checkObject, feature } from "./feature.js";
import { run } from "./store.js";

/** `bell.badges`: `{messages, requests, bell, total, version, …}`, or null until the service has sent counts.
 * @type {typeof import("../features").badges} */
export const badges = {
  make(bell) {
    let count = 0;
    /** @type {{receive: import("../types").Running<unknown>["receive"]}} */
    let counts;
    /** @type {import("../features").BadgesStore & import("../internal").Closable} */
    const made = feature(bell, machine, { user: bell.user }, (ask, store) => {
      counts = store;
      return {
        /** Subtracts an own write from the counts, such as `{messages: -2}`, once the write has succeeded. Use it
         * for writes whose answers do not carry the counts.
         * @param {{messages?: number, requests?: number, bell?: number}} by @param {Promise<any>} write */
        async expect(by, write) {
          checkObject(by, "what is expected");
          const as = `expected-${count += 1}`;
          ask({ type: "expect", as, by });
          const answer = await Promise.resolve(write).catch(() => ({ status: 0, body: null }));
          ask({ type: "answer", as, status: answer.status, body: answer.body });
          return answer;
        },
      };
    }, ["badges:update"]);
    const poll = polling(bell, (answer) => counts.receive({ type: "answer", as: "reconcile", headers: {}, ...answer }));
    return {
      ...made,
      /** Fetches the counts, however recent they are. */
      refresh: () => poll.refresh(),
      close() {
        poll.close();
        made.close();
      },
    };
  },
};

/** Polls the counts beside the stream, from the first use of the counts on.
 * @param {import("../internal").StoreBell} bell @param {(answer: {status: number, body: any}) => void} reconciled */
function polling(bell, reconciled) {
  const { clock } = bell;
  /** @type {ReturnType<typeof run<reconciliation.State, any>>} */
  const it = run(reconciliation, { ...bell.limits.polling, foreground: bell.isForeground() }, clock, perform);
  /** @type {((answer: any) => void)[]} */
  let waiting = [];

  /** @param {import("../internal").PollingAction} action @returns {Promise<void>} */
  async function perform({ do: what, status, body, path, headers, asked }) {
    if (what === "reconciled") return reconciled({ status, body });
    // Without a signed-in user there are no counts.
    /** @type {import("../types").Answer} */
    const answer = bell.isSignedIn() ? await bell.attempt("GET", path, undefined, headers)
      : { status: 0, headers: {}, body: undefined };
    const retryAfterMs = afterMs(answer.headers["retry-after"], clock.now());
    it.receive({
      type: "answer", asked, status: answer.status, etag: answer.headers.etag ?? null, retryAfterMs, body: answer.body,
    });
    for (const done of waiting.splice(0)) done(answer);
  }

  function close() {
    detach();
    it.close();
    for (const done of waiting.splice(0)) done(null);
  }

  const detach = bell.attach({ receive: it.receive, close });
  it.receive({ type: "connection", status: bell.connection.get().status });
  it.receive({ type: "start" });
  return {
    // Nothing is fetched in the background.
    refresh: () => it.get().foreground ? new Promise((done) => {
      waiting.push(done);
      it.receive({ type: "force" });
    }) : Promise.resolve(null),
    close,
  };
}

import { afterMs } from "../calls.js";
import * as machine from "../machines/counts.js";
import * as reconciliation from "../machines/reconciliation.js";
import { checkObject, feature } from "./feature.js";
import { run } from "./store.js";
import type { ReconciliationAction } from "../actions.js";
import type { Answer as AppAnswer } from "../contract.js";
import type { BadgesStore, Features } from "../features.js";
import type { Closable, StoreBell } from "../internal.js";
import type { ReconciliationInput, StoreInput } from "../machines/inputs.js";
import type { Answer, Feature, JSONValue, Running } from "../types.js";
import type { Run } from "./feature.js";

/** `bell.badges`: `{messages, requests, bell, total, version, …}`, or null until the service has sent counts. */
export const badges: Feature<Features["badges"]> = {
  make(bell) {
    let count = 0;
    let counts: Pick<Running<unknown, StoreInput>, "receive">;
    const made: BadgesStore & Closable = feature(bell, machine, { user: bell.user }, (ask: Run<"counts">, store) => {
      counts = store;
      return {
        /** Subtracts an own write from the counts, such as `{messages: -2}`, once the write has succeeded. Use it
         * for writes whose answers do not carry the counts. */
        async expect<T>(by: { messages?: number; requests?: number; bell?: number }, write: Promise<T>): Promise<T> {
          checkObject(by, "what is expected");
          const as = `expected-${count += 1}`;
          ask({ type: "expect", as, by });
          const answer = await Promise.resolve(write).catch(() => ({ status: 0, body: null })) as T & Answer;
          store.receive({ type: "answer", as, status: answer.status, body: answer.body });
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

/** Polls the counts beside the stream, from the first use of the counts on. */
function polling(bell: StoreBell, reconciled: (answer: { status: number; body: JSONValue }) => void) {
  const { clock } = bell;
  const options = { ...bell.limits.polling, isForeground: bell.isForeground() };
  const it: Running<reconciliation.State, ReconciliationInput> = run(reconciliation, options, clock, perform);
  const waiting: ((answer: AppAnswer | null) => void)[] = [];

  async function perform(action: ReconciliationAction): Promise<void> {
    if (action.do === "reconciled") return reconciled({ status: action.status, body: action.body });
    if (action.do !== "fetch") return;
    const { path, headers, asked } = action;
    // Without a signed-in user there are no counts.
    const answer: Answer = bell.isSignedIn() ? await bell.attempt("GET", path, undefined, headers)
      : { status: 0, headers: {}, body: undefined };
    const retryAfterMs = afterMs(answer.headers["retry-after"], clock.now());
    it.receive({
      type: "answer", asked, status: answer.status, etag: answer.headers.etag ?? null, retryAfterMs, body: answer.body,
    });
    for (const done of waiting.splice(0)) done(answer as AppAnswer);
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
    refresh: () => it.get().isForeground ? new Promise<AppAnswer | null>((done) => {
      waiting.push(done);
      it.receive({ type: "force" });
    }) : Promise.resolve(null),
    close,
  };
}

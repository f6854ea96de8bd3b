// The messages of one conversation, oldest first. A message shows as soon as it is sent. It goes through the outbox,
// and its answer or its event, whichever arrives first, confirms it. A refused message moves to `refused`, where the
// user can resend or discard it.
import { advance, apply, fetchMore, merged, takeMore } from "./list.js";
import { badgesEvent, beginAnew, isTaken, problemOf, unloaded } from "./loading.js";
import { same, sameList } from "./same.js";
import { conversation as list } from "../lists.js";
import type { FetchAction, Outcome, StoreAction } from "../actions.js";
import type { ClientEvents } from "../contract.js";
import type { Message, Problem, Thread } from "../features.js";
import type { Page } from "../models.js";
import type { InputOf, MachineEvent, StoreInputOf } from "./inputs.js";
import type { ListState, Rules } from "./list.js";

type Unsent = Thread["sending"][number];

/** A message whose answer has not come. */
interface Sent extends Unsent {
  as: string;
}

type Refused = Thread["refused"][number];

export interface State extends ListState<Message> {
  conversationId: string;
  messages: Message[];
  sending: Sent[];
  refused: Refused[];
  unread: number | null;
  readPosition: number | null;
  isLoaded: boolean;
  isRemoved: boolean;
  problem: Problem | null;
  hasEarlier: boolean;
  tries: number;
  isReadPending: boolean;
}

type Kept = Partial<Pick<State, "messages" | "refused" | "unread" | "readPosition">>;

type Result = Outcome<State>;

/** Bound on unsent messages, so that a user who keeps writing offline does not fill the memory. */
const sendingMax = 200;

export function initial({ conversationId }: { conversationId: string }): State {
  return {
    conversationId, messages: [], stored: [], sending: [], refused: [], unread: null, readPosition: null, isLoaded: false,
    isRemoved: false, problem: null, next: null, hasEarlier: false, tries: 0,
    // Whether the user has read the conversation before its first page came.
    isReadPending: false, loading: unloaded,
  };
}

export function snapshot(
  { conversationId, messages, sending, refused, unread, isLoaded, isRemoved, problem, hasEarlier }: State,
) {
  return { conversationId, messages, sending, refused, unread, isLoaded, isRemoved, problem, hasEarlier };
}

const rules: Rules<Message, State> = {
  list,
  restore: (
    state, { messages = [], refused = state.refused, unread = null, readPosition = null }: Kept,
  ) => ({ ...state, stored: messages, refused, unread, readPosition }),
  take(state, body: Page<Message>, before) {
    const messages = [...body.items].reverse();
    // Older pages stay if they join the fetched one. Otherwise there is a gap, and they are dropped.
    const first = messages[0]?.sequence ?? 0;
    // Messages that the device has kept may have been deleted since: they do not stay.
    const isJoined = !before.loading.isKept && state.stored.some((one) => one.sequence >= first - 1);
    const older = isJoined ? state.stored.filter((one) => one.sequence < first) : [];
    return { ...state, stored: [...older, ...messages], next: older.length ? state.next : body.next ?? null };
  },
  handle,
};

export function receive(state: State, input: InputOf<"conversation">): Result {
  if (input.type === "user") return beginAnew(receive, initial(state), input);
  const { state: next, actions, isTaken: isListed } = advance(rules, state, input, pagePath(state));
  const isFetched = actions.some((one) => one.do === "fetch");
  if (isFetched) actions.push({ do: "fetch", path: path(state), as: "conversation" });
  if (isListed) {
    if (next.isReadPending) actions.push(...read(next));
    next.isReadPending = false;
  }
  const made = input.type === "event" ? apply(rules, next, input)
    : input.type === "answer" ? answered(next, input) : command(next, input);
  const { loading: { isLoaded, problem }, stored: messages } = made.state;
  const settled = settle({ ...made.state, messages, isLoaded, problem, hasEarlier: made.state.next !== null });
  return { state: same(state, settled), actions: [...actions, ...made.actions] };
}

/** Returns what the device keeps for the next start: the latest messages, and those that the service has refused; null
 * for nothing. */
export const kept = ({ loading, isRemoved, stored, refused, unread, readPosition }: State) =>
  loading.isLoaded && !isRemoved ? { messages: stored.slice(-list.keptMax), refused, unread, readPosition } : null;

const path = (state: State) => `/v1/conversations/${encodeURIComponent(state.conversationId)}`;

const pagePath = ({ conversationId }: State) =>
  list.path.replace("{conversationId}", encodeURIComponent(conversationId));

function handle(state: State, { name, data }: MachineEvent, _: number, { stored }: State): Result {
  if ((data?.conversationId ?? data?.conversation?.id) !== state.conversationId) return { state, actions: [] };
  switch (name) {
    case "message:created": {
      const last = stored.at(-1)?.sequence;
      // Sequence numbers have no gaps: a skipped number means that a message was missed.
      const isGap = last !== undefined && data.message.sequence > last + 1;
      return { state: { ...state, unread: data.unread ?? state.unread }, actions: isGap ? [fetchSince(state, last)] : [] };
    }
    case "message:deleted": {
      const next = stored.map((one) => {
        return one.sequence === data.sequence && !one.deletedAt ? { ...one, text: "", deletedAt: one.sentAt } : one;
      });
      return { state: { ...state, stored: next, unread: data.unread ?? state.unread }, actions: [] };
    }
    case "conversation:read":
      return { state: { ...state, readPosition: data.readPosition, unread: data.unread }, actions: [] };
    case "conversation:removed":
      return { state: { ...state, isRemoved: true }, actions: [] };
    case "conversation:updated":
      return { state: { ...state, isRemoved: false }, actions: [] };
  }
  return { state, actions: [] };
}

function command(state: State, input: InputOf<"conversation">): Result {
  switch (input.type) {
    case "send": {
      const message = { id: input.id, text: input.text, sentAt: new Date(input.now).toISOString() };
      return post(state, message);
    }
    case "retry": {
      const message = state.refused.find((one) => one.id === input.id);
      if (!message) break;
      const { id, text } = message;
      const refused = state.refused.filter((one) => one !== message);
      return post({ ...state, refused }, { id, text, sentAt: new Date(input.now).toISOString() });
    }
    case "discard":
      return { state: { ...state, refused: state.refused.filter((one) => one.id !== input.id) }, actions: [] };
    case "read": {
      const { isLoaded, isKept } = state.loading;
      const isReadPending = input.sequence === undefined && (!isLoaded || isKept);
      return { state: same(state, { ...state, isReadPending }), actions: read(state, input.sequence) };
    }
    case "earlier": return { state, actions: fetchMore(list, state, pagePath(state)) };
    case "delete": {
      const place = `${path(state)}/messages/${encodeURIComponent(input.id)}`;
      return { state, actions: [{ do: "send", method: "DELETE", path: place, as: "delete" }] };
    }
  }
  return { state, actions: [] };
}

/** @param sequence by default the newest loaded message */
function read(state: State, sequence = state.stored.at(-1)?.sequence): StoreAction[] {
  // The count falls only after the service has confirmed it (R-CNT-RT-2).
  if (!sequence || sequence <= (state.readPosition ?? 0)) return [];
  return [{ do: "send", method: "PUT", path: `${path(state)}/read-position`, body: { sequence }, as: "read" }];
}

function post(state: State, message: Unsent): Result {
  const { conversationId } = state;
  if (state.sending.length >= sendingMax) {
    const problem: Problem = { status: 0, code: "outbox.full", detail: "Too many messages are waiting to be sent." };
    return refuse(state, message, problem);
  }
  const { id, text } = message;
  const tries = state.tries + 1;
  const sent = { ...message, as: `send-${tries}` };
  return {
    state: { ...state, tries, sending: [...state.sending, sent] },
    actions: [
      { do: "send", method: "POST", path: `${path(state)}/messages`, body: { id, text }, as: sent.as },
      { do: "publish", name: "message:sending", data: { conversationId, ...message } },
    ],
  };
}

function refuse(state: State, { id, text, sentAt }: Unsent, problem: ReturnType<typeof problemOf>): Result {
  const refused = [...state.refused, { id, text, sentAt, problem }].slice(-sendingMax);
  const { conversationId } = state;
  return {
    state: { ...state, refused, sending: state.sending.filter((one) => one.id !== id) },
    actions: [{ do: "publish", name: "message:refused", data: { conversationId, id, text, problem } }],
  };
}

function answered(state: State, input: StoreInputOf<"answer">): Result {
  const { as, status, body } = input;
  const actions: StoreAction[] = isTaken(status) ? badgesEvent(body) : [];
  const message = state.sending.find((one) => one.as === as);
  if (message && !isTaken(status)) return refuse(state, message, problemOf(input));
  if (message) {
    const { conversationId } = state;
    actions.push({ do: "publish", name: "message:sent", data: { conversationId, id: message.id } });
    const sending = state.sending.filter((one) => one !== message);
    const next = body?.message ? add({ ...state, sending }, [body.message]) : { ...state, sending };
    // A user who replies has read what came before.
    if (body?.unread > 0) actions.push(...read(state, body.message?.sequence ?? 0));
    return { state: { ...next, unread: body?.unread ?? state.unread }, actions };
  }
  if (as === "read" || as === "delete") {
    if (!isTaken(status)) {
      const { conversationId } = state;
      const data: ClientEvents["conversation:refused"] = { conversationId, what: as, problem: problemOf(input) };
      return { state, actions: [{ do: "publish", name: "conversation:refused", data }] };
    }
    const { readPosition = state.readPosition, unread = state.unread } = body ?? {};
    return { state: { ...state, readPosition, unread }, actions };
  }
  const longer = takeMore(list, state, input);
  if (longer) return { state: longer, actions: [] };
  if (!isTaken(status)) return { state, actions: [] };
  if (as === "conversation") {
    return { state: { ...state, unread: body.unread, readPosition: body.readPosition, isRemoved: false }, actions: [] };
  }
  if (as === "since") {
    const next = add(state, body.items);
    const last = body.items.at(-1)?.sequence;
    return { state: next, actions: body.next && last ? [fetchSince(state, last)] : [] };
  }
  return { state, actions: [] };
}

function fetchSince(state: State, sequence: number): FetchAction {
  return { do: "fetch", path: `${path(state)}/messages?since=${sequence}&limit=100`, as: "since" };
}

/** Adds messages that are not there yet. */
function add(state: State, newer: Message[]): State {
  return { ...state, stored: merged(list, newer, state.stored) };
}

/** Removes arrived messages from the ones being sent. */
function settle(state: State): State {
  const ids = new Set(state.messages.map((one) => one.id));
  const sending = sameList(state.sending, state.sending.filter((one) => !ids.has(one.id)));
  return { ...state, sending };
}

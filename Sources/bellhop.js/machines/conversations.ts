// A user's list of conversations, ordered by newest message, each with its preview and its unread count. A message
// being sent becomes its conversation's preview at once, and is removed if the service refuses it.
import { advance, beginAnew, restored, unloaded } from "./loading.js";
import { same, sameList } from "./same.js";
import type { FetchAction, Outcome, StoreAction } from "../actions.js";
import type { Conversation, LastMessage, Problem } from "../features.js";
import type { MessageCreated } from "../models.js";
import type { InputOf, MachineEvent } from "./inputs.js";
import type { Loading } from "./loading.js";

type Item = Conversation;

/** The last message of a conversation, while it is being sent. */
interface Unsent {
  id: string;
  conversationId: string;
  preview: string;
  sentAt: string;
}

export interface State {
  user: string | null;
  items: Item[];
  isLoaded: boolean;
  problem: Problem | null;
  hasMore: boolean;
  stored: Item[];
  sending: Unsent[];
  next: string | null;
  loading: Loading;
}

type Result = Outcome<State>;

/** The maximum number of conversations of a user (`conversations.conversationsOfUserMax` of `/v1/config`). */
const storedMax = 1000;
/** The conversations that the device keeps for the next start: one page. */
const keptMax = 100;
/** The maximum number of unsent messages of one conversation. */
const sendingMax = 200;
const page = {
  as: "list", path: "/v1/conversations?limit=100",
  events: [
    "message:created", "message:deleted", "conversation:read", "conversation:updated", "conversation:removed",
  ],
};

export function initial(options?: { user?: string | null }): State {
  const user = options?.user ?? null;
  return {
    user, items: [], isLoaded: false, problem: null, hasMore: false, stored: [], sending: [], next: null,
    loading: unloaded,
  };
}

export const snapshot = ({ items, isLoaded, problem, hasMore }: State) => ({ items, isLoaded, problem, hasMore });

export function receive(state: State, input: InputOf<"conversations">): Result {
  if (input.type === "user") return beginAnew(receive, initial(input), input);
  const held = restored(state, input, restore);
  const step = advance(held.loading, input, page);
  const actions: StoreAction[] = [...step.actions];
  let next = { ...held, loading: step.loading };
  if (step.isGone) next = restore(next, {});
  if (step.body) {
    // If the list has further pages, the older conversations already loaded are kept behind the first page.
    next = step.body.next && state.next ? { ...next, stored: merge(state.stored, step.body.items) }
      : { ...next, stored: step.body.items, next: step.body.next ?? null };
    for (const one of step.since) next = handle(next, one.event).state;
  }
  if (input.type === "start") next.user ??= input.user ?? null;
  if (input.type === "event") {
    const made = handle(next, input.event);
    next = made.state;
    actions.push(...made.actions);
  } else if (input.type === "more" && next.next) {
    actions.push({ do: "fetch", path: `${page.path}&cursor=${encodeURIComponent(next.next)}`, as: "more" });
  } else if (input.type === "answer" && input.status === 200) {
    if (input.as === "more") {
      next = { ...next, stored: merge(input.body.items, next.stored), next: input.body.next ?? null };
    } else if (input.as.startsWith("one:")) next = { ...next, stored: merge(next.stored, [input.body]) };
  }
  return { state: same(state, show(next)), actions };
}

/** Returns what the device keeps for the next start: the first page; null for nothing. */
export const kept = ({ loading, stored }: State) => loading.isLoaded ? { items: stored.slice(0, keptMax) } : null;

const restore = (state: State, { items = [] }: { items?: Item[] }): State => ({ ...state, stored: items });

function handle(state: State, { name, data }: MachineEvent): Result {
  const id = data?.conversationId;
  const held = state.stored.find((one) => one.id === id);
  switch (name) {
    case "stream:ready":
      return { state: state.user || !data?.userId ? state : { ...state, user: data.userId }, actions: [] };
    case "message:created": {
      const settled = { ...state, sending: state.sending.filter((one) => one.id !== data.message.id) };
      if (!held) return { state: settled, actions: [fetchOne(data.conversationId)] };
      return { state: replaced(settled, add(held, data, state.user)), actions: [] };
    }
    case "message:deleted": {
      if (!held) break;
      const isLast = held.lastMessage?.sequence === data.sequence;
      const lastMessage = isLast ? { ...held.lastMessage, preview: null } as LastMessage : held.lastMessage;
      return { state: replaced(state, { ...held, lastMessage, unread: data.unread ?? held.unread }), actions: [] };
    }
    case "conversation:read":
      if (!held) break;
      return { state: replaced(state, { ...held, readPosition: data.readPosition, unread: data.unread }), actions: [] };
    case "conversation:updated": {
      const { conversation } = data;
      const before = state.stored.find((one) => one.id === conversation.id);
      // A new member has no unread messages from earlier.
      const own = before ?? { readPosition: conversation.lastSequence, unread: 0 };
      return { state: replaced(state, { ...own, ...conversation }), actions: [] };
    }
    case "conversation:removed":
      return { state: { ...state, stored: state.stored.filter((one) => one.id !== id) }, actions: [] };
    case "message:sending": {
      const { conversationId, text, sentAt } = data;
      const message = { id: data.id, conversationId, preview: text.slice(0, 120), sentAt };
      const others = state.sending.filter((one) => one.id !== data.id);
      return { state: { ...state, sending: [...others, message].slice(-sendingMax) }, actions: [] };
    }
    case "message:sent":
    case "message:refused":
      return { state: { ...state, sending: state.sending.filter((one) => one.id !== data.id) }, actions: [] };
  }
  return { state, actions: [] };
}

function add(held: Item, { message, preview, order, unread }: MessageCreated, user: string | null): Item {
  // The message is already included, for example by a list fetched meanwhile.
  if (message.sequence <= held.lastSequence) return held;
  const isOwn = message.senderId === user;
  return {
    ...held, order: order ?? held.order, lastSequence: message.sequence,
    lastMessage: {
      id: message.id, sequence: message.sequence, senderId: message.senderId, preview: preview ?? message.text,
      sentAt: message.sentAt,
    },
    unread: unread ?? (isOwn ? held.unread : (held.unread ?? 0) + 1),
  };
}

function replaced(state: State, conversation: Item): State {
  return { ...state, stored: merge(state.stored, [conversation]) };
}

function merge(stored: Item[], newer: Item[]) {
  const ids = new Set(newer.map((one) => one.id));
  return [...newer, ...stored.filter((one) => !ids.has(one.id))].sort(byOrder).slice(0, storedMax);
}

function byOrder(one: Item, other: Item) {
  return one.order < other.order ? 1 : one.order > other.order ? -1 : 0;
}

function fetchOne(id: string): FetchAction {
  return { do: "fetch", path: `/v1/conversations/${encodeURIComponent(id)}`, as: `one:${id}` };
}

/** Puts conversations with an unsent message on top, with that message as the preview. */
function show(state: State): State {
  let items = state.stored;
  for (const message of state.sending) {
    const held = items.find((one) => one.id === message.conversationId);
    if (!held) continue;
    const { id, preview, sentAt } = message;
    const lastMessage = { id, sequence: null, senderId: state.user, preview, sentAt };
    items = [{ ...held, lastMessage }, ...items.filter((one) => one !== held)];
  }
  const { isLoaded, problem } = state.loading;
  return { ...state, items: sameList(state.items, items), isLoaded, problem, hasMore: state.next !== null };
}

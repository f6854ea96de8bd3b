// A user's list of conversations, ordered by newest message, each with its preview and its unread count. A message
// being sent becomes its conversation's preview at once, and is removed if the service refuses it.
import { advance, apply, fetchMore, merged, put, takeMore } from "./list.js";
import { beginAnew, unloaded } from "./loading.js";
import { same, sameList } from "./same.js";
import { conversations as list } from "../lists.js";
import type { FetchAction, Outcome } from "../actions.js";
import type { Conversation, LastMessage, Problem } from "../features.js";
import type { MessageCreated, Page } from "../models.js";
import type { InputOf, MachineEvent } from "./inputs.js";
import type { ListState, Rules } from "./list.js";

type Item = Conversation;

/** The last message of a conversation, while it is being sent. */
interface Unsent {
  id: string;
  conversationId: string;
  preview: string;
  sentAt: string;
}

export interface State extends ListState<Item> {
  user: string | null;
  items: Item[];
  isLoaded: boolean;
  problem: Problem | null;
  hasMore: boolean;
  sending: Unsent[];
}

type Result = Outcome<State>;

/** The maximum number of unsent messages of one conversation. */
const sendingMax = 200;
export function initial(options?: { user?: string | null }): State {
  const user = options?.user ?? null;
  return {
    user, items: [], isLoaded: false, problem: null, hasMore: false, stored: [], sending: [], next: null,
    loading: unloaded,
  };
}

export const snapshot = ({ items, isLoaded, problem, hasMore }: State) => ({ items, isLoaded, problem, hasMore });

const rules: Rules<Item, State> = {
  list,
  restore: (state, { items = [] }: { items?: Item[] }) => ({ ...state, stored: items }),
  /** If the list has further pages, the older conversations already loaded are kept behind the first page. */
  take: (state, { items, next = null }: Page<Item>) => next && state.next
    ? { ...state, stored: merged(list, state.stored, items) } : { ...state, stored: items, next },
  /** An event does not say what the user has read. A new member has no unread messages from earlier. */
  joined: (state, newer, held = { ...newer, readPosition: newer.lastSequence, unread: 0 }) => ({ ...held, ...newer }),
  handle,
};

export function receive(state: State, input: InputOf<"conversations">): Result {
  if (input.type === "user") return beginAnew(receive, initial(input), input);
  const { state: next, actions } = advance(rules, state, input, list.path);
  if (input.type === "start") next.user ??= input.user ?? null;
  const made = own(next, input);
  return { state: same(state, show(made.state)), actions: [...actions, ...made.actions] };
}

function own(state: State, input: InputOf<"conversations">): Result {
  switch (input.type) {
    case "event": return apply(rules, state, input);
    case "more": return { state, actions: fetchMore(list, state, list.path) };
    case "answer": {
      const isOne = input.as.startsWith("one:") && input.status === 200;
      const one = isOne ? { ...state, stored: put(rules, state, input.body) } : state;
      return { state: takeMore(list, state, input) ?? one, actions: [] };
    }
  }
  return { state, actions: [] };
}

/** Returns what the device keeps for the next start: the first page; null for nothing. */
export const kept = ({ loading, stored }: State) => loading.isLoaded ? { items: stored.slice(0, list.keptMax) } : null;

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
  return { ...state, stored: merged(list, state.stored, [conversation]) };
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

import { makeId } from "../calls.js";
import * as one from "../machines/conversation.js";
import * as all from "../machines/conversations.js";
import { checkId, feature } from "./feature.js";
import type { Features } from "../features.js";
import type { Feature } from "../types.js";
import type { Keyed, Run } from "./feature.js";

/** The longest message in bytes (`conversations.textBytesMax` of /v1/config). */
const textBytesMax = 4000;

/** `bell.conversations`: `{items, isLoaded, problem, hasMore}`; the newest message's conversation comes first. */
export const conversations: Feature<Features["conversations"]> = {
  make: (bell) => feature(bell, all, { user: bell.user }, (run: Run<"conversations">) => ({
    more: () => run({ type: "more" }),
  }), ["message:sending", "message:sent", "message:refused"]),
};

/** `bell.conversation(id)`: `{messages, sending, refused, unread, …}`. */
export const conversation: Keyed<"conversation"> = {
  isKeyed: true,
  make: (bell, id) => feature(bell, one, { conversationId: checkId(id, "a conversation") }, (run: Run<"conversation">) => ({
    /** @param message an id of the app's own makes repeating it harmless */
    send(text, message) {
      if (typeof text !== "string" || text.trim() === "") throw new TypeError("a message is a text that is not blank");
      if (new TextEncoder().encode(text).length > textBytesMax) {
        throw new RangeError(`a message has at most ${textBytesMax} bytes`);
      }
      return run({ type: "send", id: checkId(message?.id ?? makeId(), "a message"), text });
    },
    /** Marks messages as read, up to the newest loaded one or up to the given sequence number. */
    read(sequence) {
      const isNumber = sequence === undefined || Number.isSafeInteger(sequence);
      if (!isNumber) throw new TypeError("a sequence is a whole number");
      return run({ type: "read", sequence });
    },
    earlier: () => run({ type: "earlier" }),
    remove: (messageId) => run({ type: "delete", id: checkId(messageId, "a message") }),
    retry: (messageId) => run({ type: "retry", id: checkId(messageId, "a message") }),
    discard: (messageId) => run({ type: "discard", id: checkId(messageId, "a message") }),
  })),
};

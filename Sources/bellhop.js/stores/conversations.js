import { makeId } from "../calls.js";
import * as one from "../machines/conversation.js";
import * as all from "../machines/conversations.js";
import { checkId, feature } from "./feature.js";

/** The longest message in bytes (`conversations.textBytesMax` of /v1/config). */
const textBytesMax = 4000;

/** `bell.conversations`: `{items, isLoaded, problem, hasMore}`; the newest message's conversation comes first.
 * @type {typeof import("../features").conversations} */
export const conversations = {
  /** @param {import("../internal").StoreBell} bell */
  make: (bell) => feature(bell, all, { user: bell.user }, (run) => ({
    more: () => run({ type: "more" }),
  }), ["message:sending", "message:sent", "message:refused"]),
};

/** `bell.conversation(id)`: `{messages, sending, refused, unread, …}`.
 * @type {typeof import("../features").conversation} */
export const conversation = {
  isKeyed: true,
  /** @param {import("../internal").StoreBell} bell @param {string} id */
  make: (bell, id) => feature(bell, one, { conversationId: checkId(id, "a conversation") }, (run) => ({
    /** @param {string} text @param {{id?: string}} [message] an id of the app's own makes repeating it harmless */
    send(text, message) {
      if (typeof text !== "string" || text.trim() === "") throw new TypeError("a message is a text that is not blank");
      if (new TextEncoder().encode(text).length > textBytesMax) {
        throw new RangeError(`a message has at most ${textBytesMax} bytes`);
      }
      return run({ type: "send", id: checkId(message?.id ?? makeId(), "a message"), text });
    },
    /** Marks messages as read, up to the newest loaded one or up to the given sequence number.
     * @param {number} [sequence] */
    read(sequence) {
      const isNumber = sequence === undefined || Number.isSafeInteger(sequence);
      if (!isNumber) throw new TypeError("a sequence is a whole number");
      return run({ type: "read", sequence });
    },
    earlier: () => run({ type: "earlier" }),
    remove: (/** @type {string} */ messageId) => run({ type: "delete", id: checkId(messageId, "a message") }),
    retry: (/** @type {string} */ messageId) => run({ type: "retry", id: checkId(messageId, "a message") }),
    discard: (/** @type {string} */ messageId) => run({ type: "discard", id: checkId(messageId, "a message") }),
  })),
};

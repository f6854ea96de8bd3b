import * as machine from "../machines/requests.js";
import { checkId, checkObject, feature } from "./feature.js";

/** `bell.requests()`: the requests to the user, `bell.requests("outgoing")`: those that the user has made;
 * `{items, isLoaded, hasMore, problem}`, newest first.
 * @type {typeof import("../features").requests} */
export const requests = {
  isKeyed: true,
  key: (direction = "incoming") => [direction],
  /** @param {import("../internal").StoreBell} bell @param {string} [direction] */
  make(bell, direction = "incoming") {
    if (!["incoming", "outgoing"].includes(direction)) {
      throw new TypeError(`requests are incoming or outgoing, not ${JSON.stringify(direction)}`);
    }
    return feature(bell, machine, { direction, user: bell.user }, (run) => {
      /** @param {string} id @param {"accepted" | "declined" | null} status */
      const settle = (id, status) => run({ type: "settle", id: checkId(id, "a request"), status });
      return {
        accept: (/** @type {string} */ id) => settle(id, "accepted"),
        decline: (/** @type {string} */ id) => settle(id, "declined"),
        withdraw: (/** @type {string} */ id) => settle(id, null),
        /** Marks the requests to the user as seen, up to the newest that is shown. */
        markSeen: () => run({ type: "see" }),
        /** Asks another user.
         * @param {import("../machines/inputs").RequestDraft} draft */
        ask: (draft) => run({ type: "ask", draft: checkObject(draft, "a request") }),
        more: () => run({ type: "more" }),
      };
    });
  },
};

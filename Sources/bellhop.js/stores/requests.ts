import * as machine from "../machines/requests.js";
import { checkId, checkObject, feature } from "./feature.js";
import type { Answer } from "../contract.js";
import type { Keyed, Run } from "./feature.js";

/** `bell.requests()`: the requests to the user, `bell.requests("outgoing")`: those that the user has made;
 * `{items, isLoaded, hasMore, problem}`, newest first. */
export const requests: Keyed<"requests"> = {
  isKeyed: true,
  key: (direction = "incoming") => [direction],
  make(bell, direction = "incoming") {
    if (!["incoming", "outgoing"].includes(direction)) {
      throw new TypeError(`requests are incoming or outgoing, not ${JSON.stringify(direction)}`);
    }
    return feature(bell, machine, { direction, user: bell.user }, (run: Run<"requests">) => {
      const settle = <Body, Status>(
        id: string, status: "accepted" | "declined" | null,
      ): Promise<Answer<Body, Status> | null> => run({ type: "settle", id: checkId(id, "a request"), status });
      return {
        accept: (id) => settle(id, "accepted"),
        decline: (id) => settle(id, "declined"),
        withdraw: (id) => settle(id, null),
        /** Marks the requests to the user as seen, up to the newest that is shown. */
        markSeen: () => run({ type: "see" }),
        /** Asks another user. */
        ask: (draft) => run({ type: "ask", draft: checkObject(draft, "a request") }),
        more: () => run({ type: "more" }),
      };
    });
  },
};

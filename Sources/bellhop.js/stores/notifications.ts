import * as machine from "../machines/notifications.js";
import { checkId, checkObject, feature } from "./feature.js";
import type { Answered, Features } from "../features.js";
import type { NotificationChange } from "../machines/inputs.js";
import type { Feature } from "../types.js";
import type { Run } from "./feature.js";

type Which = NonNullable<Parameters<Features["notifications"]["markAllSeen"]>[0]>;

/** `bell.notifications`: `{items, preferences, hasMore, isLoaded, problem}`, with the newest 50 items and the
 * older ones that `more` has loaded. */
export const notifications: Feature<Features["notifications"]> = {
  make: (bell) => feature(bell, machine, {}, (run: Run<"notifications">) => {
    const change = (id: string, set: NotificationChange): Answered =>
      run({ type: "change", id: checkId(id, "a notification"), set });
    const changeAll = (set: NotificationChange, which: Which = {}): Answered =>
      run({ type: "changeAll", ...checkObject(which, "which of them"), set });
    return {
      /** Loads the next older notifications, while `hasMore` is true. */
      more: () => run({ type: "more" }),
      markSeen: (id) => change(id, { seen: true }),
      markUnseen: (id) => change(id, { seen: false }),
      markRead: (id) => change(id, { read: true }),
      markUnread: (id) => change(id, { read: false }),
      archive: (id) => change(id, { archived: true }),
      unarchive: (id) => change(id, { archived: false }),
      remove: (id) => run({ type: "remove", id: checkId(id, "a notification") }),
      /** Marks all shown notifications, or those of a category, as seen. */
      markAllSeen: (which) => changeAll({ seen: true }, which),
      markAllRead: (which) => changeAll({ read: true }, which),
      archiveAll: (which) => changeAll({ archived: true }, which),
      /** Changes `sound`, `haptics`, `quietHours` and `timeZone`. Fields that are not set keep their values. */
      setPreferences: (set) => run({ type: "prefer", set: checkObject(set, "preferences") }),
    };
  }),
};

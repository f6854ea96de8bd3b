import * as machine from "../machines/notifications.js";
import { checkId, checkObject, feature } from "./feature.js";

/** `bell.notifications`: `{items, preferences, hasMore, isLoaded, problem}`, with the newest 50 items and the
 * older ones that `more` has loaded.
 * @type {typeof import("../features").notifications} */
export const notifications = {
  /** @param {import("../internal").StoreBell} bell */
  make: (bell) => feature(bell, machine, {}, (run) => {
    /** @param {string} id @param {import("../machines/inputs").NotificationChange} set */
    const change = (id, set) => run({ type: "change", id: checkId(id, "a notification"), set });
    /** @param {import("../machines/inputs").NotificationChange} set @param {{upTo?: string, category?: string}} [which] */
    const changeAll = (set, which = {}) => run({ type: "changeAll", ...checkObject(which, "which of them"), set });
    return {
      /** Loads the next older notifications, while `hasMore` is true. */
      more: () => run({ type: "more" }),
      markSeen: (/** @type {string} */ id) => change(id, { seen: true }),
      markUnseen: (/** @type {string} */ id) => change(id, { seen: false }),
      markRead: (/** @type {string} */ id) => change(id, { read: true }),
      markUnread: (/** @type {string} */ id) => change(id, { read: false }),
      archive: (/** @type {string} */ id) => change(id, { archived: true }),
      unarchive: (/** @type {string} */ id) => change(id, { archived: false }),
      remove: (/** @type {string} */ id) => run({ type: "remove", id: checkId(id, "a notification") }),
      /** Marks all shown notifications, or those of a category, as seen.
       * @param {{upTo?: string, category?: string}} [which] */
      markAllSeen: (which) => changeAll({ seen: true }, which),
      /** @param {{upTo?: string, category?: string}} [which] */
      markAllRead: (which) => changeAll({ read: true }, which),
      /** @param {{upTo?: string, category?: string}} [which] */
      archiveAll: (which) => changeAll({ archived: true }, which),
      /** Changes `sound`, `haptics`, `quietHours` and `timeZone`. Fields that are not set keep their values.
       * @param {Partial<import("../features").Preferences>} set */
      setPreferences: (set) => run({ type: "prefer", set: checkObject(set, "preferences") }),
    };
  }),
};

import * as machine from "../machines/notifications.js";
import { checkId, checkObject, feature } from "./feature.js";

/** `bell.notifications`: `{items, preferences, isLoaded, problem}`, at most the newest 50.
 * @type {typeof import("../features").notifications} */
export const notifications = {
  /** @param {any} bell */
  make: (bell) => feature(bell, machine, {}, (run) => {
    /** @param {any} id @param {any} set */
    const change = (id, set) => run({ type: "change", id: checkId(id, "a notification"), set });
    /** @param {any} set @param {{upTo?: string, category?: string}} [which] */
    const changeAll = (set, which = {}) => run({ type: "changeAll", ...checkObject(which, "which of them"), set });
    return {
      markSeen: (/** @type {string} */ id) => change(id, { seen: true }),
      markUnseen: (/** @type {string} */ id) => change(id, { seen: false }),
      markRead: (/** @type {string} */ id) => change(id, { read: true }),
      markUnread: (/** @type {string} */ id) => change(id, { read: false }),
      archive: (/** @type {string} */ id) => change(id, { archived: true }),
      unarchive: (/** @type {string} */ id) => change(id, { archived: false }),
      remove: (/** @type {string} */ id) => run({ type: "remove", id: checkId(id, "a notification") }),
      /** All that are shown, or those of a category.
       * @param {{upTo?: string, category?: string}} [which] */
      markAllSeen: (which) => changeAll({ seen: true }, which),
      /** @param {{upTo?: string, category?: string}} [which] */
      markAllRead: (which) => changeAll({ read: true }, which),
      /** @param {{upTo?: string, category?: string}} [which] */
      archiveAll: (which) => changeAll({ archived: true }, which),
      /** `sound`, `haptics`, `quietHours`, `timeZone`; what is not named stays.
       * @param {any} set */
      setPreferences: (set) => run({ type: "prefer", set: checkObject(set, "preferences") }),
    };
  }),
};

import * as bookingMachine from "../machines/booking.js";
import * as djMachine from "../machines/dj.js";
import * as queueMachine from "../machines/queue.js";
import { checkId, checkObject, feature } from "./feature.js";

/** `bell.queue(shopId)`: `{status, isLive, isLoaded, problem}`; `status` as returned by `GET /v1/shops/{id}/queue`.
 * @type {typeof import("../features").queue} */
export const queue = {
  isKeyed: true,
  /** @param {import("../internal").StoreBell} bell @param {string} shopId */
  make: (bell, shopId) => feature(bell, queueMachine, { shopId: checkId(shopId, "a shop") }, () => ({})),
};

/** `bell.booking(id)`: `{booking, isLoaded, problem, isPending}`.
 * @type {typeof import("../features").booking} */
export const booking = {
  isKeyed: true,
  /** @param {import("../internal").StoreBell} bell @param {string} bookingId */
  make: (bell, bookingId) => feature(bell, bookingMachine, { bookingId: checkId(bookingId, "a booking") }, (run) => ({
    cancel: () => run({ type: "change", set: { status: "cancelled" } }),
    /** Changes `status`, `scheduledStart`, `durationMinutes`, `barberId` or `arrived`. Does nothing while another
     * change is pending.
     * @param {import("../machines/inputs").BookingChange} set */
    change: (set) => run({ type: "change", set: checkObject(set, "a change") }),
  })),
};

/** `bell.dj(shopId)`: `{isActive, currentTrackId, queue, isLive, isLoaded, problem}`; each track with `userVote`.
 * @type {typeof import("../features").dj} */
export const dj = {
  isKeyed: true,
  /** @param {import("../internal").StoreBell} bell @param {string} shopId */
  make: (bell, shopId) => feature(bell, djMachine, { shopId: checkId(shopId, "a shop") }, (run) => ({
    /** @param {string} trackId @param {"up" | "down" | "none"} vote */
    vote(trackId, vote) {
      if (!["up", "down", "none"].includes(vote)) throw new TypeError(`a vote is up, down or none, not "${vote}"`);
      return run({ type: "vote", trackId: checkId(trackId, "a track"), vote });
    },
    /** @param {{trackId: string, trackName: string, artistName: string, albumArt?: string | null}} track */
    add(track) {
      for (const name of ["trackId", "trackName", "artistName"]) {
        checkId(/** @type {Record<string, unknown>} */ (checkObject(track, "a track"))[name], name);
      }
      return run({ type: "add", track });
    },
  })),
};

import * as bookingMachine from "../machines/booking.js";
import * as djMachine from "../machines/dj.js";
import * as queueMachine from "../machines/queue.js";
import { checkId, checkObject, feature } from "./feature.js";
import type { Keyed, Run } from "./feature.js";

/** `bell.queue(shopId)`: `{status, isLive, isLoaded, problem}`; `status` as returned by `GET /v1/shops/{id}/queue`. */
export const queue: Keyed<"queue"> = {
  isKeyed: true,
  make: (bell, shopId) =>
    feature(bell, queueMachine, { shopId: checkId(shopId, "a shop") }, () => ({})),
};

/** `bell.booking(id)`: `{booking, isLoaded, problem, isPending}`. */
export const booking: Keyed<"booking"> = {
  isKeyed: true,
  make: (bell, bookingId) => feature(bell, bookingMachine, { bookingId: checkId(bookingId, "a booking") }, (
    run: Run<"booking">,
  ) => ({
    cancel: () => run({ type: "change", set: { status: "cancelled" } }),
    /** Changes `status`, `scheduledStart`, `durationMinutes`, `barberId` or `arrived`. Does nothing while another
     * change is pending. */
    change: (set) => run({ type: "change", set: checkObject(set, "a change") }),
  })),
};

/** `bell.dj(shopId)`: `{isActive, currentTrackId, queue, isLive, isLoaded, problem}`; each track with `userVote`. */
export const dj: Keyed<"dj"> = {
  isKeyed: true,
  make: (bell, shopId) => feature(bell, djMachine, { shopId: checkId(shopId, "a shop") }, (run: Run<"dj">) => ({
    vote(trackId, vote) {
      if (!["up", "down", "none"].includes(vote)) throw new TypeError(`a vote is up, down or none, not "${vote}"`);
      return run({ type: "vote", trackId: checkId(trackId, "a track"), vote });
    },
    add(track) {
      for (const name of ["trackId", "trackName", "artistName"]) {
        checkId((checkObject(track, "a track") as Record<string, unknown>)[name], name);
      }
      return run({ type: "add", track });
    },
  })),
};

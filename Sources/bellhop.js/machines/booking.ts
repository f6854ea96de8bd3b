// One booking. A status change plays haptics. The user's own change shows at once, and is reverted if the service
// refuses it.
import { advance, beginAnew, isTaken, problemOf, restored, unloaded } from "./loading.js";
import { same } from "./same.js";
import { isNewer } from "./version.js";
import type { Outcome, PlayAction, StoreAction } from "../actions.js";
import type { Booking as BookingSnapshot, Haptic, Problem } from "../features.js";
import type { Booking, BookingStatusChange } from "../models.js";
import type { BookingChange, InputOf } from "./inputs.js";
import type { Loading } from "./loading.js";
import type { Versioned } from "./version.js";

type Shown = BookingSnapshot["booking"];

export interface State {
  bookingId: string;
  booking: Shown;
  isLoaded: boolean;
  problem: Problem | null;
  stored: Shown;
  count: number;
  replaying: number;
  pending: { as: string; set: BookingChange } | null;
  loading: Loading;
}

const success: Haptic = { notification: "success", impacts: [], pulses: 1 };

export function initial({ bookingId }: { bookingId: string }): State {
  return {
    bookingId, booking: null, isLoaded: false, problem: null, stored: null, count: 0, replaying: 0, pending: null,
    loading: unloaded,
  };
}

export const snapshot = ({ booking, isLoaded, problem, pending }: State) => {
  return { booking, isLoaded, problem, isPending: pending !== null };
};

/** Returns what the device keeps for the next start; null for nothing. */
export const kept = ({ stored }: State) => stored && { booking: stored };

const restore = (state: State, { booking = null }: { booking?: Shown }): State => ({ ...state, stored: booking });

export function receive(state: State, input: InputOf<"booking">): Outcome<State> {
  if (input.type === "user") return beginAnew(receive, initial(state), input);
  const path = `/v1/bookings/${encodeURIComponent(state.bookingId)}`;
  const held = restored(state, input, restore);
  const step = advance(held.loading, input, { as: "booking", path, events: ["booking:status_change"] });
  const actions: StoreAction[] = [...step.actions];
  let next = { ...held, loading: step.loading };
  if (step.isGone) next = restore(next, {});
  if (step.body) {
    next = merge(next, step.body);
    for (const { event } of step.since) next = merge(next, fields(event.data as BookingStatusChange));
  }
  const { name, data } = input.event ?? {};
  // An event replayed after a break must not trigger haptics.
  const isReplayed = next.replaying > 0 && Boolean(input.event?.id);
  if (name === "stream:ready") next.replaying = data.replayed ?? 0;
  else if (isReplayed) next.replaying -= 1;
  if (name === "booking:status_change" && data.bookingId === state.bookingId) {
    const before = next.stored;
    next = merge(next, fields(data));
    if (next.stored !== before) {
      if (before && before.status !== data.status && !isReplayed) actions.push(played(data));
      // The event carries the status; the rest of the booking, such as its start time, is fetched.
      const more = advance(next.loading, { type: "refresh" }, { as: "booking", path });
      next.loading = more.loading;
      actions.push(...more.actions);
    }
  } else if (input.type === "change" && next.stored && !next.pending) {
    const { version, epoch } = next.stored;
    const as = `change-${next.count + 1}`;
    next = { ...next, count: next.count + 1, pending: { as, set: input.set } };
    const headers = { "If-Match": `"${version}-${epoch}"` };
    actions.push({ do: "send", method: "PATCH", path, body: input.set, headers, as });
  } else if (input.type === "answer" && input.as === next.pending?.as) {
    next = { ...next, pending: null };
    if (isTaken(input.status)) next = merge(next, input.body);
    else {
      const refusal = { bookingId: state.bookingId, problem: { ...problemOf(input), allowed: input.body?.allowed } };
      actions.push({ do: "publish", name: "booking:refused", data: refusal });
      const more = advance(next.loading, { type: "refresh" }, { as: "booking", path });
      next.loading = more.loading;
      actions.push(...more.actions);
    }
  }
  const { isLoaded, problem } = next.loading;
  const booking = next.stored && next.pending ? { ...next.stored, ...next.pending.set } as Shown : next.stored;
  const isSame = state.pending === next.pending && state.stored === next.stored;
  return { state: same(state, { ...next, booking: isSame ? state.booking : booking, isLoaded, problem }), actions };
}

/** Plays haptics for a status. A notification reports the same change; the shared key makes the phone vibrate once. */
function played({ bookingId, status }: BookingStatusChange): PlayAction {
  return { do: "play", haptic: success, sound: false, key: `booking:${bookingId}:${status}` };
}

/** Returns the members of an event that belong to a booking. */
function fields({ bookingId, status, version, epoch, estimatedCompletion }: BookingStatusChange) {
  return { id: bookingId, status, version, epoch, estimatedCompletion };
}

function merge(state: State, newer: Partial<Booking> & Versioned): State {
  if (newer.id !== state.bookingId) return state;
  // A whole booking of the same version completes the state that an event started.
  const { version, epoch } = state.stored ?? {};
  const isCompletion = newer.createdAt && newer.version === version && newer.epoch === epoch;
  if (!isNewer(state.stored, newer) && !isCompletion) return state;
  return { ...state, stored: { ...state.stored, ...newer } as Shown };
}

// The events that a tab keeps, for the next holder to pass on to tabs that missed some.
import type { Entry } from "../internal.js";

/** The number of kept events. */
const ringMax = 512;

export class Ring {
  /** The id of the last event; "" before the first. */
  lastId = "";
  /** oldest first */
  #entries: Entry[] = [];

  has(id: string) {
    return this.#entries.some((entry) => entry.id === id);
  }

  /** Keeps an event, and returns whether it is new. The previous holder may have sent it already. */
  take({ id, event }: Entry) {
    // Notices of a stream (`stream:…`) are always new.
    if (id !== "" && this.has(id) && !event?.name.startsWith("stream:")) return false;
    this.#entries.push({ id, event });
    if (this.#entries.length > ringMax) this.#entries = this.#entries.slice(-ringMax / 2);
    if (id !== "") this.lastId = id;
    return true;
  }

  /** Moves to a position without its event. */
  move(id: string) {
    if (id === "" || id === this.lastId) return;
    this.#entries.push({ id, event: null });
    this.lastId = id;
  }

  /** Returns the events after a position; null if the position is not kept. */
  after(id: string) {
    const place = id === "" ? -1 : this.#entries.map((entry) => entry.id).lastIndexOf(id);
    return place < 0 ? null : this.#entries.slice(place + 1);
  }
}

// The events that a tab keeps, for the next holder to pass on to tabs that missed some.

/** The number of kept events. */
const ringMax = 512;

/** @typedef {import("../internal").Entry} Entry a position without an event has `event: null` */

export class Ring {
  /** The id of the last event; "" before the first. */
  lastId = "";
  /** @type {Entry[]} oldest first */
  #entries = [];

  /** @param {string} id */
  has(id) {
    return this.#entries.some((entry) => entry.id === id);
  }

  /** Keeps an event, and returns whether it is new. The previous holder may have sent it already.
   * @param {Entry} entry */
  take({ id, event }) {
    // Notices of a stream (`stream:…`) are always new.
    if (id !== "" && this.has(id) && !event?.name.startsWith("stream:")) return false;
    this.#entries.push({ id, event });
    if (this.#entries.length > ringMax) this.#entries = this.#entries.slice(-ringMax / 2);
    if (id !== "") this.lastId = id;
    return true;
  }

  /** Moves to a position without its event.
   * @param {string} id */
  move(id) {
    if (id === "" || id === this.lastId) return;
    this.#entries.push({ id, event: null });
    this.lastId = id;
  }

  /** Returns the events after a position; null if the position is not kept.
   * @param {string} id */
  after(id) {
    const place = id === "" ? -1 : this.#entries.map((entry) => entry.id).lastIndexOf(id);
    return place < 0 ? null : this.#entries.slice(place + 1);
  }
}

// The topics that all stores of a tab want of the stream, as one.

/** As many topics as a stream may have (`stream.topicsMax` of /v1/config). */
const topicsMax = 100;

/** @param {(topics: string[]) => void} changed */
export function wishes(changed) {
  /** @type {Map<any, string[]>} */
  const all = new Map();
  const union = () => [...new Set([...all.values()].flat())];
  return {
    all: union,
    /** The topics of one store, in place of its own before; null: none.
     * @param {any} of @param {string[] | null} topics */
    set(of, topics) {
      const others = [...all].filter(([key]) => key !== of).flatMap(([, own]) => own);
      if (new Set([...others, ...(topics ?? [])]).size > topicsMax) {
        throw new RangeError(`a stream has at most ${topicsMax} topics`);
      }
      const had = all.delete(of);
      if (topics) all.set(of, topics);
      if (topics || had) changed(union());
    },
  };
}

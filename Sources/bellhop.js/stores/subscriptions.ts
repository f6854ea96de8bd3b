// The combined topics of all stores of a tab.

/** The maximum number of topics of a stream (`stream.topicsMax` of /v1/config). */
const topicsMax = 100;

export function subscriptions(changed: (topics: string[]) => void) {
  const all = new Map<object, string[]>();
  const union = () => [...new Set([...all.values()].flat())];
  return {
    all: union,
    /** Replaces the topics of one store; null removes them. */
    set(of: object, topics: string[] | null) {
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

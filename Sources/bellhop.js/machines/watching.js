// A feature's shared topic stays subscribed while it is watched and a little longer, so that a screen is up
// to date when the user returns to it.

const lingerMs = 30_000;

/** @param {boolean} isWanted @param {import("./inputs").StoreInput} input @param {string} topic
 * @returns {{isWanted: boolean, actions: any[]}} */
export function watchTopic(isWanted, input, topic) {
  const want = { do: "subscribe", topics: [topic] };
  if (input.type === "start") return { isWanted: true, actions: [want] };
  if (input.type === "watch" && input.watched) {
    const stay = { do: "timer", name: "linger", at: null };
    return { isWanted: true, actions: isWanted ? [stay] : [stay, want] };
  }
  if (input.type === "watch") {
    return { isWanted, actions: isWanted ? [{ do: "timer", name: "linger", at: input.now + lingerMs }] : [] };
  }
  if (input.type === "timer" && input.name === "linger") {
    return { isWanted: false, actions: [{ do: "subscribe", topics: [] }] };
  }
  return { isWanted, actions: [] };
}

/** Why the service refused the topic; cleared by the topic's next event.
 * @param {import("../types").Refusal | null} problem @param {import("./inputs").StoreInput} input @param {string} topic */
export function topicProblem(problem, input, topic) {
  const { name, data } = input.event ?? {};
  if (name === "topic:refused" && data.topic === topic) {
    return { code: "unknown", detail: "", .../** @type {Partial<typeof data.problem>} */ (data.problem) };
  }
  return input.type === "timer" && input.name === "linger" ? null : problem;
}

// A feature's shared topic stays subscribed while it is watched and a little longer, so that a screen is up
// to date when the user returns to it.
import type { StoreAction } from "../actions.js";
import type { Refusal } from "../types.js";
import type { StoreInput } from "./inputs.js";

const lingerMs = 30_000;

interface Watching {
  isSubscribed: boolean;
  actions: StoreAction[];
}

export function watchTopic(isSubscribed: boolean, input: StoreInput, topic: string): Watching {
  const subscribe: StoreAction = { do: "subscribe", topics: [topic] };
  if (input.type === "start") return { isSubscribed: true, actions: [subscribe] };
  if (input.type === "watch" && input.watched) {
    const stay: StoreAction = { do: "timer", name: "linger", at: null };
    return { isSubscribed: true, actions: isSubscribed ? [stay] : [stay, subscribe] };
  }
  if (input.type === "watch") {
    return { isSubscribed, actions: isSubscribed ? [{ do: "timer", name: "linger", at: input.now + lingerMs }] : [] };
  }
  if (input.type === "timer" && input.name === "linger") {
    return { isSubscribed: false, actions: [{ do: "subscribe", topics: [] }] };
  }
  return { isSubscribed, actions: [] };
}

/** Why the service refused the topic; cleared by the topic's next event. */
export function topicProblem(problem: Refusal | null, input: StoreInput, topic: string) {
  const { name, data } = input.event ?? {};
  if (name === "topic:refused" && data.topic === topic) {
    return { code: "unknown", detail: "", ...(data.problem as Partial<typeof data.problem>) };
  }
  return input.type === "timer" && input.name === "linger" ? null : problem;
}

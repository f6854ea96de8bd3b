// Compiled by tsc, never run: checks the types as an app's code uses them.
import { connect as connectCore } from "../core.js";
import type { Features } from "../features.js";
import * as features from "../features.js";
import { connect } from "../index.js";
import { offline } from "../offline.js";
import { push } from "../push.js";
import { tabs } from "../tabs.js";
import { useBadges, useDJ, useNotifications, useRequests } from "../react.js";

export function app(bell: Features): string {
  const total: number = bell.badges.get()?.total ?? 0;
  const stop: () => void = bell.notifications.subscribe(() => {});
  const titles: string[] = bell.notifications.get().items.map((item) => item.title);
  void bell.notifications.markAllSeen({ category: "visit" }).then((answer) => answer?.status);
  void bell.conversation("c1").send("Hi");
  bell.visibleRows("posts", { schema: "bellhop" }).show(["p1", 2]);
  bell.visibleRows("posts").apply({ id: "p1", like_count: 3 });
  bell.rows<{ id: number; done: boolean }>("todos", { filter: "list_id=eq.7" }).apply({ id: 1, done: true });
  // @ts-expect-error: a row has no such member
  bell.rows<{ id: number; done: boolean }>("todos", { filter: "list_id=eq.7" }).apply({ id: 1, doen: true });
  if (bell.notifications.get().hasMore) void bell.notifications.more();
  void bell.requests("outgoing").ask({ kind: "friend", toUserId: "ben" });
  // @ts-expect-error: requests are incoming or outgoing
  bell.requests("both");
  // @ts-expect-error: no kind of requests
  void bell.requests().ask({ kind: "frend", toUserId: "ben" });
  const { me } = bell.leaderboard("c1").get();
  // @ts-expect-error: a vote is up, down or none
  void bell.dj("s1").vote("t1", "left");
  // @ts-expect-error: a queue has no such command
  bell.queue("s1").vote("t1", "up");
  stop();
  return `${total} ${titles.join()} ${me?.rank ?? ""}`;
}

// connect() includes all features; the core has only the given ones, under the given names.
const url = "https://bells.example";
export const all = app(connect({ url, token: "t" }));
const small = connectCore({ url, token: "t", tabs, features: { counts: features.badges, queue: features.queue } });
export const total: number | undefined = small.counts.get()?.total;
export const isLive: boolean = small.queue("s1").get().isLive;
export const stop: () => void = small.subscribe(["queue:s1"]);
const kept = connect({ url, token: "t", user: "ada", offline: offline({ mayDiscard: (waiting) => waiting.length < 3 }) });
export const left: Promise<number> = kept.signOut().then((items) => items?.length ?? 0);
const ringing = connect({ url, token: "t", features: { push } });
export const status: string = ringing.push.get().status;
void ringing.push.register({ platform: "apns", token: "00", environment: "sandbox" });
// @ts-expect-error: no such platform
void ringing.push.register({ platform: "pager", token: "00" });
// @ts-expect-error: the bell was made without push messages
kept.push.get();
// @ts-expect-error: no such limit
offline({ limits: { bytes: 3 } });
// @ts-expect-error: the core was created without it
small.feed();
// @ts-expect-error: no features were given
connectCore({ url, token: "t" }).badges;
// @ts-expect-error: not a feature
connectCore({ url, token: "t", features: { nothing: {} } });
export const given: Features = connectCore({ url, token: "t", features });

export function component(): number {
  const { items, markSeen } = useNotifications();
  const { queue, vote } = useDJ("s1");
  const { items: requests, accept } = useRequests();
  if (requests[0]) void accept(requests[0].id);
  if (items[0]) void markSeen(items[0].id);
  if (queue[0]) void vote(queue[0].trackId, "up");
  return useBadges()?.total ?? 0;
}

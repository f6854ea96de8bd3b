// Compiled by tsc, never run: checks the types as an app's code uses them.
import { connect as connectCore } from "../core.js";
import type { Features } from "../features";
import * as features from "../features.js";
import { connect } from "../index.js";
import { tabs } from "../tabs.js";
import { useBadges, useDJ, useNotifications } from "../react.js";

export function app(bell: Features): string {
  const total: number = bell.badges.get()?.total ?? 0;
  const stop: () => void = bell.notifications.subscribe(() => {});
  const titles: string[] = bell.notifications.get().items.map((item) => item.title);
  void bell.notifications.markAllSeen({ category: "visit" }).then((answer) => answer?.status);
  void bell.conversation("c1").send("Hi");
  bell.visibleRows("posts", { schema: "bellhop" }).show(["p1", 2]);
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
// @ts-expect-error: the core was created without it
small.feed();
// @ts-expect-error: no features were given
connectCore({ url, token: "t" }).badges;
// @ts-expect-error: not a feature
connectCore({ url, token: "t", features: { nothing: {} } });
export const given: Features = connectCore({ url, token: "t", features });

export function component(): number {
  const { items, markSeen } = useNotifications();
  const { tracks, vote } = useDJ("s1");
  if (items[0]) void markSeen(items[0].id);
  if (tracks[0]) void vote(tracks[0].trackId, "up");
  return useBadges()?.total ?? 0;
}

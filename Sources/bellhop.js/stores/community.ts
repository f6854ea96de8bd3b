import * as feedMachine from "../machines/feed.js";
import * as leaderboardMachine from "../machines/leaderboard.js";
import { checkId, feature } from "./feature.js";
import { tables } from "./tables.js";
import type { Answered } from "../features.js";
import type { EngagementChange } from "../machines/inputs.js";
import type { Keyed, Run } from "./feature.js";

/** `bell.leaderboard(challengeId)`: `{lines, me, entries, isBehind, isLive, …}`; `me` is the user's own row. */
export const leaderboard: Keyed<"leaderboard"> = {
  isKeyed: true,
  make(bell, challengeId) {
    const options = { challengeId: checkId(challengeId, "a challenge"), user: bell.user };
    return feature(bell, leaderboardMachine, options, () => ({}));
  },
};

/** `bell.feed()`: `{posts, newCount, isMore, hasMore, …}`; the banner shows `newCount`. */
export const feed: Keyed<"feed"> = {
  isKeyed: true,
  tables,
  make: (bell) => feature(bell, feedMachine, { user: bell.user }, (run: Run<"feed">, it) => {
    /** Shows the counts in the visible rows of posts, too. */
    const publish = (postId: string) => {
      const post = it.get().posts.find((one) => one.id === postId);
      if (!post) return;
      const { likeCount, repostCount } = post;
      bell.publish("post:engaged", { postIds: [postId], updates: { [postId]: { likeCount, repostCount } } });
    };
    const engage = (postId: string, set: EngagementChange) => {
      const answered: Answered = run({ type: "engage", postId: checkId(postId, "a post"), set });
      publish(postId);
      return answered.finally(() => publish(postId));
    };
    return {
      showNew: () => run({ type: "showNew" }),
      more: () => run({ type: "more" }),
      like: (postId) => engage(postId, { liked: true }),
      unlike: (postId) => engage(postId, { liked: false }),
      repost: (postId) => engage(postId, { reposted: true }),
      unrepost: (postId) => engage(postId, { reposted: false }),
    };
  }),
};

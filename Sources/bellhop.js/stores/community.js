import * as feedMachine from "../machines/feed.js";
import * as leaderboardMachine from "../machines/leaderboard.js";
import { checkId, feature } from "./feature.js";
import { tables } from "./tables.js";

/** `bell.leaderboard(challengeId)`: `{lines, me, entries, isBehind, isLive, …}`; `me` is the user's own row.
 * @type {typeof import("../features").leaderboard} */
export const leaderboard = {
  isKeyed: true,
  /** @param {import("../internal").StoreBell} bell @param {string} challengeId */
  make(bell, challengeId) {
    const options = { challengeId: checkId(challengeId, "a challenge"), user: bell.user };
    return feature(bell, leaderboardMachine, options, () => ({}));
  },
};

/** `bell.feed()`: `{posts, newCount, isMore, hasMore, …}`; the banner shows `newCount`.
 * @type {typeof import("../features").feed} */
export const feed = {
  isKeyed: true,
  tables,
  /** @param {import("../internal").StoreBell} bell */
  make: (bell) => feature(bell, feedMachine, { user: bell.user }, (run, it) => {
    /** Shows the counts in the visible rows of posts, too.
     * @param {string} postId */
    const tell = (postId) => {
      const post = it.get().posts.find((one) => one.id === postId);
      if (!post) return;
      const { likeCount, repostCount } = post;
      bell.publish("post:engaged", { postIds: [postId], updates: { [postId]: { likeCount, repostCount } } });
    };
    /** @param {string} postId @param {import("../machines/inputs").EngagementChange} set */
    const engage = (postId, set) => {
      const answered = run({ type: "engage", postId: checkId(postId, "a post"), set });
      tell(postId);
      return answered.finally(() => tell(postId));
    };
    return {
      showNew: () => run({ type: "showNew" }),
      more: () => run({ type: "more" }),
      like: (/** @type {string} */ postId) => engage(postId, { liked: true }),
      unlike: (/** @type {string} */ postId) => engage(postId, { liked: false }),
      repost: (/** @type {string} */ postId) => engage(postId, { reposted: true }),
      unrepost: (/** @type {string} */ postId) => engage(postId, { reposted: false }),
    };
  }),
};

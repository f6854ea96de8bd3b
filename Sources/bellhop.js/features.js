// The features that a bell can have: `connect({ url, token, features: { badges, queue } })` of bellhop.js/core.
export { badges } from "./stores/badges.js";
export { feed, leaderboard } from "./stores/community.js";
export { conversation, conversations } from "./stores/conversations.js";
export { notifications } from "./stores/notifications.js";
export { requests } from "./stores/requests.js";
export { invalidation, rows, visibleRows } from "./stores/rows.js";
export { booking, dj, queue } from "./stores/shop.js";

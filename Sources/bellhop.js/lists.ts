// Written by .ci/client-models from openapi.yaml: change that, and run it.

/** What an event does to a list: `of` is the member with the item or the change, `by` the one with the keys, `set` the
 * members that a patch takes, `in` the one with the name of the store. With `isOnce` the event is not repeated on a page
 * that was fetched meanwhile. */
export interface ListChange {
  do: "upsert" | "add" | "patch" | "patchEach" | "remove" | "byHand";
  of?: string;
  by?: string;
  in?: string;
  set?: string[];
  isOnce?: boolean;
}

/** A write of the user, which shows before it is answered. `answer`: the member of the answer with the item. `members`:
 * those of the answer that change the item. `missing`: what an answer with 404 does. */
export interface ListWrite {
  method: string;
  path: string;
  as: string;
  do: "patch" | "remove";
  set?: Record<string, unknown>;
  answer?: string;
  members?: string[];
  missing?: "remove";
}

/** What the contract says of the list of a store. */
export interface List {
  as: string;
  path: string;
  more: string;
  key: string;
  order: string;
  isAscending?: boolean;
  refused?: { event: string; id?: string; ids?: string };
  storedMax: number;
  keptMax: number;
  events: Record<string, ListChange>;
  writes?: Record<string, ListWrite>;
}

export const notifications: List = {
  as: "list",
  path: "/v1/notifications?limit=50",
  more: "more:{next}",
  key: "id",
  order: "id",
  storedMax: 50,
  keptMax: 50,
  refused: { event: "notifications:refused", ids: "ids" },
  events: {
    "notification:created": { do: "byHand" },
    "notification:updated": { do: "patch", by: "ids", of: "state" },
    "notification:removed": { do: "remove", by: "ids" },
  },
  writes: {
    change: { method: "PATCH", path: "/v1/notifications/{id}", as: "change", do: "patch", answer: "notification", missing: "remove" },
    remove: { method: "DELETE", path: "/v1/notifications/{id}", as: "change", do: "remove", missing: "remove" },
    changeAll: { method: "PATCH", path: "/v1/notifications", as: "change", do: "patch" },
  },
};

export const conversations: List = {
  as: "list",
  path: "/v1/conversations?limit=100",
  more: "more",
  key: "id",
  order: "order",
  storedMax: 1000,
  keptMax: 100,
  events: {
    "message:created": { do: "byHand" },
    "message:deleted": { do: "byHand" },
    "conversation:read": { do: "patch", by: "conversationId", set: ["readPosition", "unread"] },
    "conversation:updated": { do: "upsert", of: "conversation" },
    "conversation:removed": { do: "remove", by: "conversationId" },
  },
};

export const conversation: List = {
  as: "list",
  path: "/v1/conversations/{conversationId}/messages?limit=50",
  more: "earlier",
  key: "id",
  order: "sequence",
  storedMax: 500,
  keptMax: 50,
  isAscending: true,
  events: {
    "message:created": { do: "add", of: "message", in: "conversationId" },
    "message:deleted": { do: "byHand" },
  },
};

export const requests: List = {
  as: "list",
  path: "/v1/requests?direction={direction}&limit=50",
  more: "more:{next}",
  key: "id",
  order: "id",
  storedMax: 500,
  keptMax: 50,
  refused: { event: "requests:refused", id: "id" },
  events: {
    "request:created": { do: "upsert" },
    "request:updated": { do: "upsert" },
    "request:removed": { do: "remove", by: "id" },
  },
  writes: {
    answer: { method: "PATCH", path: "/v1/requests/{id}", as: "settle", do: "patch", answer: "request" },
    withdraw: { method: "DELETE", path: "/v1/requests/{id}", as: "settle", do: "remove", missing: "remove" },
  },
};

export const feed: List = {
  as: "feed",
  path: "/v1/feed?limit=50",
  more: "more",
  key: "id",
  order: "sequence",
  storedMax: 500,
  keptMax: 50,
  refused: { event: "feed:refused", id: "postId" },
  events: {
    "feed:new_post": { do: "byHand" },
    "feed:post_removed": { do: "remove", by: "postId" },
    "engagement_update": { do: "patchEach", of: "updates", isOnce: true },
  },
  writes: {
    like: { method: "PUT", path: "/v1/posts/{id}/likes/me", as: "engage", do: "patch", set: { liked: true }, members: ["likeCount", "repostCount", "liked", "reposted"] },
    unlike: { method: "DELETE", path: "/v1/posts/{id}/likes/me", as: "engage", do: "patch", set: { liked: false }, members: ["likeCount", "repostCount", "liked", "reposted"] },
    repost: { method: "PUT", path: "/v1/posts/{id}/reposts/me", as: "engage", do: "patch", set: { reposted: true }, members: ["likeCount", "repostCount", "liked", "reposted"] },
    unrepost: { method: "DELETE", path: "/v1/posts/{id}/reposts/me", as: "engage", do: "patch", set: { reposted: false }, members: ["likeCount", "repostCount", "liked", "reposted"] },
  },
};

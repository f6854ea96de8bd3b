// The cards of shared things: bookings, a shop's queue and music, leaderboards, posts and table changes.
import { $, counted, el, inline, list, show, when, write } from "./dom.js";
import { answered, follow, reloading, shown, withEveryStream } from "./cards.js";
import { api, bell, has, onSession } from "./session.js";

// MARK: Bookings

async function loadBookings() {
  const { items } = await api("GET", "/v1/bookings?limit=10");
  show("card-bookings", items.length > 0);
  list($("bookings"), items.map((item) => ({
    key: item.id, sign: [item.status, item.scheduledStart, item.barberId],
    make: () => el("li", { class: "line" },
      el("span", {},
        el("strong", {}, item.service || item.id),
        el("small", {}, [item.shopId, item.barberId].filter(Boolean).join(", "))),
      el("span", { class: "side" }, el("span", { class: `tag ${item.status}` }, item.status),
        item.scheduledStart && when(item.scheduledStart))),
  })));
}

// MARK: A shop

function drawQueue({ status, isLive }) {
  show("card-queue", Boolean(status));
  if (!status) return;
  const isStaffed = status.state !== "unstaffed";
  const wait = (name, lane) => {
    const estimate = status.estimate?.[lane];
    const minutes = estimate ? estimate.p50 : status.estimatedWaitTimes[lane];
    return el("div", {},
      el("b", {}, isStaffed ? `${minutes}` : "–", isStaffed && el("small", {}, " min")),
      el("span", {}, name, estimate && isStaffed ? el("small", {}, `90 % within ${estimate.p90} min`) : null));
  };
  const line = !isStaffed ? `${status.queueLength} waiting, no barber on duty.`
    : `${status.queueLength} waiting, ${status.inService} in service` +
      (status.state === "paused" ? ", all barbers on a break." : `, ${status.currentlyServing} barbers on duty.`);
  $("queue-at").replaceChildren(isLive ? "" : "not live, ", when(status.updatedAt));
  $("queue").replaceChildren(
    el("div", { class: "waits" }, wait("standard", "standard"), wait("black card", "blackCard")),
    el("p", { class: "hint" }, `${status.shopId}: ${line}`));
}

function drawMusic({ queue: tracks, currentTrackId, isActive }, store) {
  const playing = tracks.find((track) => track.trackId === currentTrackId);
  const coming = tracks.filter((track) => track.trackId !== currentTrackId).slice(0, 6);
  show("card-music", isActive && tracks.length > 0);
  write("playing", playing ? `${playing.trackName}, ${playing.artistName}` : "");
  const vote = ({ trackId, userVote }, wanted) =>
    shown(answered(store.vote(trackId, userVote === wanted ? "none" : wanted)));
  const button = (track, wanted, count, sign) => el("button", {
    "data-name": wanted, "aria-pressed": String(track.userVote === wanted), onclick: () => vote(track, wanted),
  }, `${sign} ${count}`, el("span", { class: "hidden" }, ` ${wanted}: ${track.trackName}`));
  list($("music"), coming.map((track) => ({
    key: track.trackId, sign: track,
    make: () => el("li", { class: "line" },
      el("span", {},
        el("strong", {}, track.trackName), el("small", {}, `${track.artistName}, added by ${track.addedBy}`)),
      el("span", { class: "side" },
        button(track, "up", track.upvotes, "▲"), button(track, "down", track.downvotes, "▼"))),
  })));
}

// MARK: Leaderboards and posts

/** @type {Map<string, {name: string, store: any, off: () => void}>} */
let boards = new Map();

async function loadChallenges() {
  const { items } = await api("GET", "/v1/challenges?limit=5");
  for (const { id, name } of items) {
    if (boards.has(id)) continue;
    const store = bell.leaderboard(id);
    boards.set(id, { name, store, off: store.subscribe(drawRanks) });
  }
  drawRanks();
}

function drawRanks() {
  const known = [...boards].map(([id, { name, store }]) => ({ id, name, ...store.get() })).filter(({ me }) => me);
  show("card-ranks", known.length > 0);
  list($("ranks"), known.map(({ id, name, me, entries }) => ({
    key: id, sign: [name, me.rank, me.score, entries],
    make: () => el("li", { class: "line" },
      el("span", {}, el("strong", {}, name || id), el("small", {}, counted(me.score, "point"))),
      el("span", { class: "side" }, el("b", {}, `${me.rank}`), el("small", {}, `of ${entries}`))),
  })));
}

function drawFeed({ posts, newCount, isMore }, store) {
  show("card-feed", posts.length > 0 || newCount > 0);
  show("new-posts", newCount > 0);
  write("new-posts", isMore ? `${newCount}+ new posts` : counted(newCount, "new post"));
  list($("feed"), posts.slice(0, 5).map((post) => ({
    key: post.id, sign: [post.text, post.likeCount, post.repostCount, post.liked],
    make: () => el("li", { class: "line" },
      el("span", {},
        el("strong", {}, post.authorId), el("small", {}, post.text || counted(post.media.length, "picture")),
        el("small", {}, when(post.createdAt), post.repostCount ? `, ${counted(post.repostCount, "repost")}` : "")),
      el("span", { class: "side" }, el("button", {
        "data-name": "like", "aria-pressed": String(Boolean(post.liked)),
        onclick: () => shown(answered(post.liked ? store.unlike(post.id) : store.like(post.id))),
      }, `♥ ${post.likeCount}`, el("span", { class: "hidden" }, " likes")))),
  })));
}

// MARK: Table changes

const rowsMax = 12;
let rows = [];

/** Returns the line for an event of the tables: stale queries, subscribed rows, or counts of subscribed rows. */
function tableNote({ name, data }) {
  if (name === "query:invalidate") {
    const causes = data.causes ?? [];
    const tables = [...new Set(causes.map((cause) => cause.table))].map((table) => {
      const count = causes.filter((cause) => cause.table === table).length;
      return count > 1 ? `${table} ×${count}` : table;
    });
    const others = data.causesComplete ? "" : " and others";
    const hint = tables.length ? `changed: ${tables.join(", ")}${others}` : "cause not included";
    return { kind: "stale", text: data.keys.map((key) => key.join("/")).join("  "), hint };
  }
  if (name === "table:change") {
    const record = data.change === "leave" ? data.oldRecord : data.record;
    return { kind: data.change, text: `${data.table}  ${inline(record)}`, hint: data.type.toLowerCase() };
  }
  if (name !== "engagement_update") return null;
  const text = data.postIds.map((id) => `${id}  ${inline(data.updates[id])}`).join("  ");
  return { kind: "counts", text, hint: "" };
}

function drawRows() {
  show("card-rows", rows.length > 0);
  list($("rows"), rows.map((row) => ({
    key: String(row.number), sign: row.number,
    make: () => el("li", {}, el("span", { class: `tag ${row.kind}` }, row.kind), el("code", {}, row.text),
      el("small", {}, row.hint, row.hint ? ", " : "", when(row.at))),
  })));
}

onSession((connected, { shop }) => {
  rows = [];
  boards = new Map();
  let number = 0;
  const bookings = reloading(loadBookings);
  const challenges = reloading(loadChallenges);
  const offs = [bookings.stop, challenges.stop];
  if (has("social")) {
    const feed = connected.feed();
    offs.push(follow(feed, (state) => drawFeed(state, feed)));
  }
  if (has("shops")) offs.push(withEveryStream(connected, bookings.soon));
  if (has("challenges")) offs.push(withEveryStream(connected, challenges.soon));
  offs.push(
    connected.on("*", (event) => {
      const isResync = event.name === "stream:resync";
      if (event.name === "booking:status_change" || isResync && has("shops")) bookings.soon();
      if (event.name === "leaderboard:update" || isResync && has("challenges")) challenges.soon();
      const note = tableNote(event);
      if (!note) return;
      rows = [{ ...note, at: Date.now(), number: number += 1 }, ...rows].slice(0, rowsMax);
      drawRows();
    }),
  );
  if (shop && has("shops")) {
    const music = connected.dj(shop);
    offs.push(follow(connected.queue(shop), drawQueue), follow(music, (state) => drawMusic(state, music)));
  }
  return () => {
    for (const off of [...offs, ...[...boards.values()].map((board) => board.off)]) off();
    for (const id of ["bookings", "music", "ranks", "feed", "rows"]) list($(id), []);
    for (const id of ["bookings", "queue", "music", "ranks", "feed", "rows"]) show(`card-${id}`, false);
  };
});

$("new-posts").addEventListener("click", () => bell.feed().showNew());

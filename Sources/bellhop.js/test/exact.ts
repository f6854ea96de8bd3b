// Compiled by tsc, never run: names, paths, bodies and options that the contract does not have are errors.
import { connect as connectCore } from "../core.js";
import { connect } from "../index.js";
import type { Badges, Booking, Me, NotificationDraft } from "../models.js";

// An app declares its own events. A name that is not declared then is an error, as in `unknownEvent`.
declare module "../models.js" {
  interface OwnEvents {
    "order:ready": { orderId: string };
  }
}

const url = "https://bells.example";
const bell = connect({ url, token: "t" });
declare const id: string;

export function events(): void {
  bell.on("badges:update", ({ data }) => {
    const total: number = data.total;
    // @ts-expect-error: counts have no such member
    data.any.thing;
    return total;
  });
  bell.on("order:ready", ({ data }) => data.orderId.length);
  bell.on("outbox:refused", ({ data }) => data.answer.body?.detail);
  bell.on("message:refused", ({ data }) => data.problem.code);
  bell.on("topic:refused", ({ data }) => `${data.topic} ${data.problem.code}`);
  bell.on("booking:refused", ({ data }) => data.problem.allowed?.join());
  bell.on("query:stale", ({ data }) => data.keys.map((key) => key.join()));
  bell.on("*", (event) => {
    if (event.name === "queue:update") return event.data.queueLength;
    // @ts-expect-error: another event need not have this member
    return event.data.queueLength;
  });
  // @ts-expect-error: an event of the service has another name
  bell.on("badges:updat", () => {});
  // @ts-expect-error: no event of the app has this name
  bell.on("order:redy", () => {});
  // @ts-expect-error: the data of a stream's event is typed
  bell.on("notification:created", ({ data }) => data.titel);
}

export async function paths(): Promise<void> {
  const me = await bell.get("/v1/me");
  if (me.status === 200) me.body.scope.includes("user:ada");
  else me.body?.detail;
  // @ts-expect-error: a refusal has no scope
  if (me.status !== 200) me.body.scope;
  // @ts-expect-error: this operation has no such status
  if (me.status === 201) return;
  // @ts-expect-error: the answer may be a refusal
  me.body.scope;
  if (me.status === 401) me.body?.code;
  // @ts-expect-error: no operation of the service has this path
  bell.get("/v1/mee");
  // @ts-expect-error: the path has no GET
  bell.get("/v1/events");
  // @ts-expect-error: a path of the service with a typing error
  bell.get(`/v1/shops/${id}/queues`);
  const queue = await bell.get(`/v1/shops/${id}/queue`);
  if (queue.status === 200) queue.body.avgWaitTime.toFixed();
  const list = await bell.get(`/v1/bookings?shopId=${id}&limit=5`);
  if (list.status === 200) list.body.items.map((item: Booking) => item.barberId);
  // @ts-expect-error: the operation has no such parameter
  bell.get(`/v1/bookings?shopId=${id}&limt=5`);
  // @ts-expect-error: the operation has no parameters
  bell.get("/v1/me?limit=5");
  bell.get(`/v1/bookings?${new URLSearchParams({ limit: "5" })}`);
  bell.get(`/v1/bookings?limit=5&${id}`);
  const health = await bell.get("/healthz");
  health.status.toFixed();
}

export async function bodies(): Promise<void> {
  const draft: NotificationDraft = { userId: id, category: "system", priority: "HIGH", title: "t", message: "m" };
  const created = await bell.call("POST", "/v1/notifications", { ...draft, priority: "HIGH" });
  if (created.status === 201) created.body.notification?.title.trim();
  // @ts-expect-error: a body of this operation lacks members
  bell.call("POST", "/v1/notifications", { title: "t" });
  // @ts-expect-error: this operation needs a body
  bell.call("POST", "/v1/notifications");
  // @ts-expect-error: this operation has no body
  bell.call("GET", "/v1/me", { some: "thing" });
  // @ts-expect-error: no message has this member
  bell.call("POST", `/v1/conversations/${id}/messages`, { texts: "Hi" });
  // @ts-expect-error: the path has no such method
  bell.call("DELETE", "/v1/me");
  bell.call("PATCH", `/v1/bookings/${id}`, { durationMinutes: 45 }, { "If-Match": "\"1-e\"" });
  bell.send("PUT", `/v1/users/${id}/followers/me`);
  bell.send("POST", `/v1/conversations/${id}/messages`, { text: "Hi" }, { key: "k1" });
  // @ts-expect-error: no message has this member
  bell.send("POST", `/v1/conversations/${id}/messages`, { texts: "Hi" });
  // @ts-expect-error: a write has no such option
  bell.send("POST", `/v1/conversations/${id}/messages`, { text: "Hi" }, { keys: "k1" });

  const booking = bell.booking(id);
  booking.change({ status: "cancelled" });
  // @ts-expect-error: a booking has no such member
  booking.change({ nonsense: 1 });
  // @ts-expect-error: a booking has no such status
  booking.change({ status: "cancelld" });
  const changed = await booking.change({ durationMinutes: 30 });
  // 409: the moves that are left
  if (changed?.status === 409) changed.body?.allowed?.join();
  booking.get().booking?.status.trim();
  // @ts-expect-error: a booking has no such member
  booking.get().booking?.nonsense;
  bell.queue(id).get().status?.estimatedWaitTimes.standard?.toFixed();
  // @ts-expect-error: a queue has no such member
  bell.queue(id).get().status?.nonsense;
}

export function options(): void {
  connect({ url, token: ({ fresh }) => (fresh ? null : "t"), topics: ["queue:s1"], limits: { outbox: { itemsMax: 10 } } });
  connect({ url, token: "t", storage: localStorage, player: (haptic) => haptic?.pulses });
  connect({
    url, token: "t",
    network: { addEventListener: (listener: (state: { isConnected: boolean | null; type: string }) => void) => () => {} },
    lifecycle: {
      currentState: "active",
      addEventListener: (type: "change", listener: (state: "active" | "background") => void) => ({ remove() {} }),
    },
  });
  // @ts-expect-error: there is no such option
  connect({ url, token: "t", topic: ["queue:s1"] });
  // @ts-expect-error: there is no such limit
  connect({ url, token: "t", limits: { silence: 1 } });
  // @ts-expect-error: the outbox has no such limit
  connect({ url, token: "t", limits: { outbox: { items: 1 } } });
  // @ts-expect-error: the polling of counts has no such limit
  connect({ url, token: "t", limits: { polling: { everyMs: 1 } } });
  // @ts-expect-error: not a storage
  connect({ url, token: "t", storage: { nothing: 1 } });
  // @ts-expect-error: not a network
  connect({ url, token: "t", network: {} });
  // @ts-expect-error: a notification's haptics have no such member
  connect({ url, token: "t", player: (haptic) => haptic?.pulse });
  // @ts-expect-error: there is no such option
  connectCore({ url, token: "t", feature: {} });
}

// The stores show what the contract describes.
export const badges: Badges | null = bell.badges.get();
export type Caller = Me;

// Push messages to browsers and native apps: `connect({ url, token, features: { push } })`, then `bell.push.enable()`.
// In browsers, bellhop-sw.js shows the messages.
import { makeId } from "./calls.js";
import * as machine from "./machines/push.js";
import { parsed } from "./storage/keys.js";
import { listeners, run } from "./stores/store.js";
import type { CallAction, PushAction } from "./actions.js";
import type { Answer } from "./contract.js";
import type { Problem, Store } from "./features.js";
import type { StoreBell } from "./internal.js";
import type { BellInput, PushInput } from "./machines/inputs.js";
import type { BodyOf } from "./models.js";
import type { Feature, Running } from "./types.js";

/** Whether this device receives push messages.
 *
 * - `off`: this device is not registered.
 * - `asking`: the browser asks the user for the permission.
 * - `registering`: the service has not answered yet.
 * - `on`: this device receives push messages.
 * - `denied`: the user has refused the permission.
 * - `unsupported`: this browser has no push messages.
 * - `unavailable`: the service sends none to browsers.
 * - `refused`: the service has refused the device; see `problem`.
 */
export type PushStatus =
  | "off" | "asking" | "registering" | "on" | "denied" | "unsupported" | "unavailable" | "refused";

export interface PushState {
  status: PushStatus;
  problem: Problem | null;
  /** The id under which the service knows this device; "" until it is first registered. */
  deviceId: string;
}

export interface PushStore extends Omit<Store<PushState>, "refresh"> {
  /** Asks the user for the permission, and registers this browser. Call it when the user has tapped: browsers ask only
   * then. `url` is the page that a tap on a message opens; by default the scope of the worker. */
  enable(options?: { serviceWorker?: string | ServiceWorkerRegistration; url?: string }): Promise<PushState>;
  /** Ends the push messages to this device. */
  disable(): Promise<PushState>;
  /** Registers the token of a native app. Call it at each start. */
  register(device: Omit<BodyOf<"PUT", "/v1/devices/{id}">, "subscription">): Promise<PushState>;
  /** Has the service send a test message to this device. */
  test(): Promise<Answer | null>;
}

/** The maximum time that signing out waits for the service to remove the device. */
const leaveMsMax = 3000;
/** The maximum time that the browser may take to start the worker and to subscribe. */
const enableMsMax = 30_000;
const defaultWorker = "/bellhop-sw.js";

/** Push messages: `connect({ features: { push } })`. */
export const push: Feature<PushStore> = {
  isEager: true,
  make: (bell) => new Push(bell),
};

class Push implements PushStore {
  #bell;
  #it: Running<machine.State, PushInput>;
  #shown = listeners<void>();
  #viewed;
  #detach;
  /** The user whose registration was looked up at this start. */
  #resumed = "";

  constructor(bell: StoreBell) {
    this.#bell = bell;
    this.#it = run(machine, undefined, bell.clock, (action: PushAction) => this.#perform(action));
    this.#viewed = machine.snapshot(this.#it.get());
    this.#it.onChange((state) => {
      this.#viewed = machine.snapshot(state);
      this.#shown.emit();
    });
    this.#detach = bell.attach({
      receive: (input) => this.#receive(input), leave: (token) => this.#leave(token), close: () => this.close(),
    });
    if (worker()) worker().addEventListener("message", this.#handle);
    else this.#is("unsupported");
    if (globalThis.Notification?.permission === "denied") this.#is("denied");
    if (bell.connection.get().status === "live") this.#resume();
  }

  get = () => this.#viewed;

  subscribe = (listener: () => void) => this.#shown.add(listener);

  isWatched = () => true;

  close() {
    this.#detach();
    worker()?.removeEventListener("message", this.#handle);
    this.#it.close();
  }

  // MARK: Commands

  async enable(options?: { serviceWorker?: string | ServiceWorkerRegistration; url?: string }) {
    const { serviceWorker = defaultWorker, url } = options ?? {};
    if (!worker() || typeof Notification === "undefined" || typeof PushManager === "undefined") {
      return this.#is("unsupported");
    }
    this.#is("asking");
    // Asked before anything else is awaited: browsers ask only while the user's tap is handled.
    const permission = await Notification.requestPermission();
    if (permission !== "granted") return this.#is(permission === "denied" ? "denied" : "off");
    const place = typeof serviceWorker === "string" && url
      ? `${serviceWorker}${serviceWorker.includes("?") ? "&" : "?"}url=${encodeURIComponent(url)}` : serviceWorker;
    try {
      const late = new Promise<never>((_, reject) => this.#bell.clock.after(enableMsMax, () =>
        reject(new Error("the browser did not answer in 30 seconds"))));
      const enabled = Promise.resolve(typeof place === "string" ? worker().register(place) : place)
        .then((registration) => this.#subscribe(registration));
      return await Promise.race([enabled, late]);
    } catch (error) {
      return this.#is("refused", { status: 0, code: "push.failed", detail: String((error as Error).message) });
    }
  }

  async disable() {
    await this.#forget();
    await this.#it.receive({ type: "unregister" });
    return this.get();
  }

  async register(device: Parameters<PushStore["register"]>[0]) {
    if (typeof device?.token !== "string" || !["apns", "fcm"].includes(device.platform)) {
      throw new TypeError("register takes a token and its platform: apns or fcm");
    }
    return this.#put(device);
  }

  async test(): Promise<Answer | null> {
    const { status, deviceId } = this.get();
    if (status !== "on") return null;
    return this.#bell.attempt("POST", `/v1/devices/${encodeURIComponent(deviceId)}/test`) as Promise<Answer>;
  }

  // MARK: Parts

  #is(status: PushStatus, problem?: Problem) {
    this.#it.receive({ type: "status", status, problem });
    return this.get();
  }

  #perform(action: PushAction) {
    switch (action.do) {
      case "call": return this.#call(action);
      case "badge": return setBadge(action.count);
      case "close": return void this.#registration().then((it) => closeShown(it, action.tags));
    }
  }

  async #call({ method, path, body, as }: CallAction) {
    const answer = await this.#bell.attempt(method, path, body);
    await this.#it.receive({ ...answer, type: "answer", as });
  }

  #receive(input: BellInput) {
    if (input.type === "user") {
      // Another user must not see the messages of the one before.
      if (this.get().status === "on") this.#forget();
      this.#resumed = "";
    }
    this.#it.receive(input);
    if (input.type === "connection" && input.status === "live") this.#resume();
  }

  /** Registers the subscription of this browser again, which may have changed since the last start. Ends that of another
   * user, who has not signed out. */
  async #resume() {
    const { user, storage } = this.#bell;
    if (!user || this.#resumed === user || !worker()) return;
    this.#resumed = user;
    const { user: last } = parsed(await storage.get(this.#key("push")).catch(() => null) ?? "") ?? {};
    if (last && last !== user) return this.#forget();
    const registration = last && await this.#registration();
    if (registration && Notification.permission === "granted" && user === this.#bell.user) {
      await this.#subscribe(registration).catch(() => {});
    }
  }

  async #subscribe(registration: ServiceWorkerRegistration) {
    const { body } = await this.#bell.attempt("GET", "/v1/config");
    const key = body?.push?.webPushKey;
    if (!key) {
      if (body?.push) return this.#is("unavailable");
      return this.#is("off", { status: 0, code: "unreachable", detail: "" });
    }
    await active(registration);
    const { pushManager } = registration;
    const options = { userVisibleOnly: true, applicationServerKey: key };
    const subscription = await pushManager.subscribe(options).catch(async () => {
      // A subscription of another key is in the way.
      await (await pushManager.getSubscription())?.unsubscribe();
      return pushManager.subscribe(options);
    });
    const { endpoint, keys } = subscription.toJSON();
    const remembered = JSON.stringify({ user: this.#bell.user, scope: registration.scope });
    await this.#bell.storage.set(this.#key("push"), remembered).catch(() => {});
    return this.#put({ platform: "webpush", subscription: { endpoint, keys } });
  }

  async #put(draft: object) {
    const { storage } = this.#bell;
    const key = this.#key("device");
    let id = await storage.get(key).catch(() => null);
    if (!id) {
      id = makeId();
      await storage.set(key, id).catch(() => {});
    }
    this.#it.receive({ type: "device", id });
    await this.#it.receive({ type: "register", draft });
    return this.get();
  }

  /** Ends the user's push messages at sign-out. */
  async #leave(token: string | null) {
    const late = new Promise((done) => this.#bell.clock.after(leaveMsMax, () => done(null)));
    await Promise.race([Promise.all([this.#remove(token), this.#forget()]), late]);
  }

  /** Removes this device from the service, also one that an earlier start has registered.
   * @param token of the user who leaves */
  async #remove(token: string | null) {
    const { storage } = this.#bell;
    const id = this.get().deviceId || await storage.get(this.#key("device")).catch(() => null);
    if (!token || !id) return;
    const headers = { Authorization: `Bearer ${token}` };
    await this.#bell.attempt("DELETE", `/v1/devices/${encodeURIComponent(id)}`, undefined, headers);
  }

  /** Ends the subscription of this browser, so that nothing reaches it even if the service cannot be reached. */
  async #forget() {
    setBadge(0);
    const registration = await this.#registration();
    await this.#bell.storage.remove(this.#key("push")).catch(() => {});
    const subscription = await registration?.pushManager.getSubscription().catch(() => null);
    await subscription?.unsubscribe().catch(() => {});
    await closeShown(registration);
  }

  async #registration(): Promise<ServiceWorkerRegistration | null> {
    const { scope } = parsed(await this.#bell.storage.get(this.#key("push")).catch(() => null) ?? "") ?? {};
    return scope && await worker()?.getRegistration(scope).catch(() => null) || null;
  }

  /** Handles a message of the service worker. */
  #handle = ({ data }: MessageEvent) => {
    if (data?.bellhop === "click") this.#bell.publish("push:click", { tag: data.tag, data: data.data });
    if (data?.bellhop !== "subscription") return;
    this.#resumed = "";
    this.#resume();
  };

  #key(what: string) {
    return `bellhop ${what} ${this.#bell.url}`;
  }
}

const worker = () => globalThis.navigator?.serviceWorker as ServiceWorkerContainer;

/** Resolves when the worker of a registration runs: subscriptions need it. */
async function active({ active, installing, waiting }: ServiceWorkerRegistration) {
  const next = installing ?? waiting;
  if (active || !next) return;
  await new Promise((done) => next.addEventListener("statechange", () => next.state === "activated" && done(null)));
}

/** Removes messages from the screen; without tags, all of them. */
async function closeShown(registration: ServiceWorkerRegistration | null, tags?: string[]) {
  for (const shown of await registration?.getNotifications().catch(() => []) ?? []) {
    if (!tags || tags.includes(shown.tag)) shown.close();
  }
}

/** Shows a number on the icon of an installed app. */
function setBadge(count: number) {
  const { navigator } = globalThis as { navigator?: { setAppBadge?(count: number): Promise<void> } };
  navigator?.setAppBadge?.(count).catch(() => {});
}

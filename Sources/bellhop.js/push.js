// Push messages to browsers and native apps: `connect({ url, token, features: { push } })`, then `bell.push.enable()`.
// In browsers, bellhop-sw.js shows the messages.
import { makeId } from "./calls.js";
import * as machine from "./machines/push.js";
import { parsed } from "./storage/keys.js";
import { listeners, run } from "./stores/store.js";

/**
 * @typedef {import("./push").PushStore} PushStore
 * @typedef {import("./internal").StoreBell} StoreBell
 */

/** The maximum time that signing out waits for the service to remove the device. */
const leaveMsMax = 3000;
/** The maximum time that the browser may take to start the worker and to subscribe. */
const enableMsMax = 30_000;
const defaultWorker = "/bellhop-sw.js";

/** @type {typeof import("./push").push} */
export const push = {
  isEager: true,
  /** @param {StoreBell} bell */
  make: (bell) => new Push(bell),
};

/** @implements {PushStore} */
class Push {
  #bell;
  #it;
  #shown = /** @type {import("./types").Listeners<void>} */ (listeners());
  #viewed;
  #detach;
  /** The user whose registration was looked up at this start. */
  #resumed = "";

  /** @param {StoreBell} bell */
  constructor(bell) {
    this.#bell = bell;
    /** @type {import("./types").Running<machine.State>} */
    this.#it = run(machine, undefined, bell.clock, (/** @type {any} */ action) => this.#perform(action));
    this.#viewed = machine.view(this.#it.get());
    this.#it.onChange((state) => {
      this.#viewed = machine.view(state);
      this.#shown.tell();
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

  /** @param {() => void} listener */
  subscribe = (listener) => this.#shown.add(listener);

  isWatched = () => true;

  close() {
    this.#detach();
    worker()?.removeEventListener("message", this.#handle);
    this.#it.close();
  }

  // MARK: Commands

  /** @param {{serviceWorker?: string | ServiceWorkerRegistration, url?: string}} [options] */
  async enable(options) {
    const { serviceWorker = defaultWorker, url } = options ?? {};
    if (!worker() || typeof Notification === "undefined" || typeof PushManager === "undefined") return this.#is("unsupported");
    this.#is("asking");
    // Asked before anything else is awaited: browsers ask only while the user's tap is handled.
    const permission = await Notification.requestPermission();
    if (permission !== "granted") return this.#is(permission === "denied" ? "denied" : "off");
    const place = typeof serviceWorker === "string" && url
      ? `${serviceWorker}${serviceWorker.includes("?") ? "&" : "?"}url=${encodeURIComponent(url)}` : serviceWorker;
    try {
      const late = new Promise((_, reject) => this.#bell.clock.after(enableMsMax, () =>
        reject(new Error("the browser did not answer in 30 seconds"))));
      const enabled = Promise.resolve(typeof place === "string" ? worker().register(place) : place)
        .then((registration) => this.#subscribe(registration));
      return await Promise.race([enabled, late]);
    } catch (error) {
      return this.#is("refused", { status: 0, code: "push.failed", detail: String(/** @type {Error} */ (error).message) });
    }
  }

  async disable() {
    await this.#forget();
    await this.#it.receive({ type: "unregister" });
    return this.get();
  }

  /** @param {Parameters<PushStore["register"]>[0]} device */
  async register(device) {
    if (typeof device?.token !== "string" || !["apns", "fcm"].includes(device.platform)) {
      throw new TypeError("register takes a token and its platform: apns or fcm");
    }
    return this.#put(device);
  }

  /** @returns {Promise<any>} */
  async test() {
    const { status, deviceId } = this.get();
    return status === "on" ? this.#bell.attempt("POST", `/v1/devices/${encodeURIComponent(deviceId)}/test`) : null;
  }

  // MARK: Parts

  /** @param {import("./push").PushStatus} status @param {any} [problem] */
  #is(status, problem) {
    this.#it.receive({ type: "status", status, problem });
    return this.get();
  }

  /** @param {any} action */
  #perform(action) {
    switch (action.do) {
      case "call": return this.#call(action);
      case "badge": return setBadge(action.count);
      case "close": return void this.#registration().then((it) => closeShown(it, action.tags));
    }
  }

  /** @param {{method: string, path: string, body?: unknown, as: string}} action */
  async #call({ method, path, body, as }) {
    const answer = await this.#bell.attempt(method, path, body);
    await this.#it.receive({ ...answer, type: "answer", as });
  }

  /** @param {import("./types").Input} input */
  #receive(input) {
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

  /** @param {ServiceWorkerRegistration} registration */
  async #subscribe(registration) {
    const { body } = await this.#bell.attempt("GET", "/v1/config");
    const key = body?.push?.webPushKey;
    if (!key) return this.#is(body?.push ? "unavailable" : "off", body?.push ? undefined : { status: 0, code: "unreachable", detail: "" });
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

  /** @param {object} draft */
  async #put(draft) {
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

  /** Ends the user's push messages at sign-out.
   * @param {string | null} token */
  async #leave(token) {
    const late = new Promise((done) => this.#bell.clock.after(leaveMsMax, () => done(null)));
    await Promise.race([Promise.all([this.#remove(token), this.#forget()]), late]);
  }

  /** Removes this device from the service, also one that an earlier start has registered.
   * @param {string | null} token of the user who leaves */
  async #remove(token) {
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

  /** @returns {Promise<ServiceWorkerRegistration | null>} */
  async #registration() {
    const { scope } = parsed(await this.#bell.storage.get(this.#key("push")).catch(() => null) ?? "") ?? {};
    return scope && await worker()?.getRegistration(scope).catch(() => null) || null;
  }

  /** Handles a message of the service worker.
   * @param {MessageEvent} event */
  #handle = ({ data }) => {
    if (data?.bellhop === "click") this.#bell.publish("push:click", { tag: data.tag, data: data.data });
    if (data?.bellhop !== "subscription") return;
    this.#resumed = "";
    this.#resume();
  };

  /** @param {string} what */
  #key(what) {
    return `bellhop ${what} ${this.#bell.url}`;
  }
}

const worker = () => /** @type {ServiceWorkerContainer} */ (globalThis.navigator?.serviceWorker);

/** Resolves when the worker of a registration runs: subscriptions need it.
 * @param {ServiceWorkerRegistration} registration */
async function active({ active, installing, waiting }) {
  const next = installing ?? waiting;
  if (active || !next) return;
  await new Promise((done) => next.addEventListener("statechange", () => next.state === "activated" && done(null)));
}

/** Removes messages from the screen; without tags, all of them.
 * @param {ServiceWorkerRegistration | null} registration @param {string[]} [tags] */
async function closeShown(registration, tags) {
  for (const shown of await registration?.getNotifications().catch(() => []) ?? []) {
    if (!tags || tags.includes(shown.tag)) shown.close();
  }
}

/** Shows a number on the icon of an installed app.
 * @param {number} count */
function setBadge(count) {
  const { navigator } = /** @type {{navigator?: {setAppBadge?(count: number): Promise<void>}}} */ (globalThis);
  navigator?.setAppBadge?.(count).catch(() => {});
}

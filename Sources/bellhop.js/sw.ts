// The service worker that shows push messages: bellhop-sw.js. An app with a worker of its own imports it there:
// `importScripts("https://bells.example/bellhop-sw.js")`.
import { message } from "./machines/push.js";
import type { MessageAction } from "./actions.js";
import type { JSONValue } from "./types.js";

interface Page {
  url: string;
  focus(): Promise<Page>;
  postMessage(message: object): void;
}

interface Waiting {
  waitUntil(promise: Promise<unknown>): void;
}

interface PushEvent extends Waiting {
  data: { json(): JSONValue } | null;
}

interface ClickEvent extends Waiting {
  notification: Notification;
}

/** What a service worker uses of its global object. The types of the DOM are those of a page. */
interface WorkerScope {
  location: { href: string };
  navigator: { setAppBadge?(count: number): Promise<void> };
  registration: ServiceWorkerRegistration;
  clients: {
    matchAll(options: { type: "window"; includeUncontrolled: boolean }): Promise<Page[]>;
    openWindow(url: string): Promise<Page | null>;
  };
  addEventListener(name: "push", listener: (event: PushEvent) => void): void;
  addEventListener(name: "notificationclick", listener: (event: ClickEvent) => void): void;
  addEventListener(name: "pushsubscriptionchange", listener: (event: Waiting) => void): void;
}

const worker = globalThis as unknown as WorkerScope;
/** The page that a tap opens: `bellhop-sw.js?url=/inbox`; by default the scope of the worker. */
const target = () => new URL(new URL(worker.location.href).searchParams.get("url") ?? worker.registration.scope,
  worker.location.href).href;

worker.addEventListener("push", (event) => event.waitUntil(receive(event.data)));

async function receive(data: PushEvent["data"]) {
  let payload;
  try {
    payload = data?.json();
  } catch {
    // A message of another sender, in an app's own worker.
    return;
  }
  for (const action of message(payload)) await perform(action);
}

async function perform(action: MessageAction) {
  const { registration, navigator } = worker;
  switch (action.do) {
    case "show": {
      const { title, body, tag, silent, data } = action;
      // The next message of a conversation replaces the one before, and is felt again.
      const renotify = tag !== "" && !silent;
      return registration.showNotification(title, { body, tag, silent, renotify, data: { bellhop: data } });
    }
    case "close":
      for (const shown of await registration.getNotifications()) if (action.tags.includes(shown.tag)) shown.close();
      return;
    case "badge": return navigator.setAppBadge?.(action.count).catch(() => {});
  }
}

worker.addEventListener("notificationclick", (event) => {
  const { data, tag } = event.notification;
  if (!data?.bellhop) return;
  event.notification.close();
  event.waitUntil(open(tag, data.bellhop));
});

/** Shows the app: a page of it that is open, or a new one. */
async function open(tag: string, data: object) {
  const url = target();
  const pages = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  const page = pages.find((one) => one.url === url)
    ?? pages.find((one) => one.url.startsWith(worker.registration.scope));
  const shown = await (page ? page.focus().catch(() => page) : worker.clients.openWindow(url));
  shown?.postMessage({ bellhop: "click", tag, data });
}

// The browser has changed the address. An open page registers the new one; without a page the next start does.
worker.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(report()));

async function report() {
  const pages = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  for (const page of pages) page.postMessage({ bellhop: "subscription" });
}

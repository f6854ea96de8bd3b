// The service worker that shows push messages: bellhop-sw.js. An app with a worker of its own imports it there:
// `importScripts("https://bells.example/bellhop-sw.js")`.
import { message } from "./machines/push.js";

const worker = /** @type {any} */ (globalThis);
/** The page that a tap opens: `bellhop-sw.js?url=/inbox`; by default the scope of the worker. */
const target = () => new URL(new URL(worker.location.href).searchParams.get("url") ?? worker.registration.scope,
  worker.location.href).href;

worker.addEventListener("push", (/** @type {any} */ event) => event.waitUntil(receive(event.data)));

/** @param {{json(): any} | null} data */
async function receive(data) {
  let payload;
  try {
    payload = data?.json();
  } catch {
    // A message of another sender, in an app's own worker.
    return;
  }
  for (const action of message(payload)) await perform(action);
}

/** @param {any} action */
async function perform(action) {
  const { registration, navigator } = worker;
  switch (action.do) {
    case "show": {
      const { title, body, tag, silent, data } = action;
      // The next message of a conversation replaces the one before, and is felt again.
      return registration.showNotification(title, { body, tag, silent, renotify: tag !== "" && !silent, data: { bellhop: data } });
    }
    case "close":
      for (const shown of await registration.getNotifications()) if (action.tags.includes(shown.tag)) shown.close();
      return;
    case "badge": return navigator.setAppBadge?.(action.count).catch(() => {});
  }
}

worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
  const { data, tag } = event.notification;
  if (!data?.bellhop) return;
  event.notification.close();
  event.waitUntil(open(tag, data.bellhop));
});

/** Shows the app: a page of it that is open, or a new one.
 * @param {string} tag @param {object} data */
async function open(tag, data) {
  const url = target();
  const pages = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  const page = pages.find((/** @type {any} */ one) => one.url === url)
    ?? pages.find((/** @type {any} */ one) => one.url.startsWith(worker.registration.scope));
  const shown = await (page ? page.focus().catch(() => page) : worker.clients.openWindow(url));
  shown?.postMessage({ bellhop: "click", tag, data });
}

// The browser has changed the address. An open page registers the new one; without a page the next start does.
worker.addEventListener("pushsubscriptionchange", (/** @type {any} */ event) => event.waitUntil(tell()));

async function tell() {
  const pages = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  for (const page of pages) page.postMessage({ bellhop: "subscription" });
}

"""Push messages in Chromium: the page at / registers the browser, and its service worker shows, withdraws and opens what
the DevTools protocol delivers (ServiceWorker.deliverPushMessage). A start without a network shows the last state.

    python push.py [--seed N] [--shots FOLDER]

With --shots, screenshots of the page's button in its states are written to FOLDER, wide and narrow, light and dark.
Chromium reaches no push service here, so the page's PushManager is a double, and nothing else is. In Firefox
(BROWSER=firefox) nothing can deliver a message, nor take a permission back: the rest of the test runs.
"""

import argparse
import base64
import json
import pathlib
import time

from playwright.sync_api import sync_playwright

from coldstart import ColdStart
from harness.browsers import is_firefox, launch
from harness.waiting import wait_until
from service import Files, Service, context

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, help="not used: nothing here is random")
parser.add_argument("--shots", type=pathlib.Path)
options = parser.parse_args()

# The service's key pair: the private scalar and the public point.
VAPID_KEY = "Ur5zzph2LoJ78TKZx261i2vXgrgApj7dVKfdCOpCjRI"
VAPID_PUBLIC_KEY = "BIFaIjyyMPoWgVAjA2ngBwa7fT6m3EozuaOICvurfIV8ss74llOEPbr_JCuxUqZA0qwx5a7evQzEXi3ZbgPWZr0"

# What a browser's push service would give: an address, and the browser's keys.
SUBSCRIPTION = """
const keys = {
  p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
};
const made = (endpoint) => ({ endpoint, toJSON: () => ({ endpoint, expirationTime: null, keys }), unsubscribe: async () => {
  localStorage.removeItem("subscription");
  return true;
} });
PushManager.prototype.subscribe = async ({ applicationServerKey }) => {
  const endpoint = localStorage.subscription ?? `https://fcm.googleapis.com/fcm/send/${crypto.randomUUID()}`;
  Object.assign(localStorage, { subscription: endpoint, applicationServerKey });
  return made(endpoint);
};
PushManager.prototype.getSubscription = async () => localStorage.subscription ? made(localStorage.subscription) : null;
window.badges = [];
navigator.setAppBadge = async (count) => { badges.push(count); };
"""


class PushService(Service):
    """The service with Web Push."""

    def start(self):
        self.environment |= {
            "BELLHOP_PUSH_KEYS": base64.b64encode(bytes(32)).decode(), "BELLHOP_VAPID_KEY": VAPID_KEY,
            "BELLHOP_VAPID_CONTACT": "mailto:ops@bells.example"}
        super().start()


class Trial:
    def __init__(self, browser, service):
        self.browser, self.service = browser, service
        self.ada = service.token("ada", "--lifetime", "1d")
        self.window = context(browser)
        self.window.grant_permissions(["notifications"], origin=service.url)
        self.window.add_init_script(SUBSCRIPTION)

    def open(self, token=None):
        page = self.window.new_page()
        page.goto(f"{self.service.url}/#token={token or self.ada}")
        page.wait_for_selector("#state[data-state=live]")
        return page

    @staticmethod
    def shoot(page, name):
        """Takes screenshots of the top of the page, in which the button is."""
        if not options.shots:
            return
        for size, width in (("wide", 1400), ("narrow", 390)):
            page.set_viewport_size({"width": width, "height": 900})
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                page.screenshot(path=options.shots / f"notify-{name}-{size}-{scheme}.png", clip={
                    "x": 0, "y": 0, "width": width, "height": 300})

    def devices(self, token):
        status, text = self.service.get("/v1/devices", token)
        assert status == 200, text
        return json.loads(text)["items"]

    def deliver(self, page, payload):
        """Delivers a message to the service worker of the page, as its push service would."""
        session = self.window.new_cdp_session(page)
        found = []
        session.on("ServiceWorker.workerRegistrationUpdated",
                   lambda event: found.extend(one["registrationId"] for one in event["registrations"]))
        session.send("ServiceWorker.enable")
        wait_until(lambda: page.evaluate("1") and found, "the registration of the worker")
        session.send("ServiceWorker.deliverPushMessage", {
            "origin": self.service.url, "registrationId": found[-1], "data": json.dumps(payload)})
        session.detach()

    def receive(self, page, payload, what, is_there):
        """Delivers a message until it has its effect: on a busy machine DevTools may drop one while the worker starts."""
        delivered_at = float("-inf")

        def effect():
            nonlocal delivered_at
            if time.monotonic() - delivered_at > 10:
                self.deliver(page, payload)
                delivered_at = time.monotonic()
            return is_there()
        wait_until(effect, lambda: f"{what}, not {self.shown(page)}")

    @staticmethod
    def shown(page):
        return page.evaluate("""async () => {
            const registration = await navigator.serviceWorker.ready;
            return (await registration.getNotifications()).map(({ tag, title, body }) => [tag, title, body]);
        }""")

    def run(self):
        page = self.open()
        page.wait_for_selector("#notify:has-text('Notify me on this device')")
        self.shoot(page, "off")
        page.click("#notify")
        page.wait_for_selector("#notify:has-text('Stop notifications here')")
        self.shoot(page, "on")
        assert page.evaluate("localStorage.applicationServerKey") == VAPID_PUBLIC_KEY
        [device] = self.devices(self.ada)
        assert device["platform"] == "webpush", device

        if not is_firefox():
            self.receives(page)
        # The next start registers the same device again; an address that the browser has changed, too.
        before = self.devices(self.ada)[0]["registeredAt"]
        page.reload()
        page.wait_for_selector("#notify:has-text('Stop notifications here')")
        wait_until(lambda: self.devices(self.ada)[0]["registeredAt"] > before, "it is registered again")
        before = self.devices(self.ada)[0]["registeredAt"]
        page.evaluate("""() => {
            localStorage.removeItem("subscription");
            navigator.serviceWorker.dispatchEvent(new MessageEvent("message", { data: { bellhop: "subscription" } }));
        }""")
        wait_until(lambda: self.devices(self.ada)[0]["registeredAt"] > before, "the new address is registered")
        assert len(self.devices(self.ada)) == 1, self.devices(self.ada)

        # By the user's click, by signing out, and by another user of the browser.
        page.click("#notify")
        page.wait_for_selector("#notify:has-text('Notify me on this device')")
        wait_until(lambda: self.devices(self.ada) == [], "the device is removed")
        assert self.shown(page) == [], self.shown(page)
        page.click("#notify")
        page.wait_for_selector("#notify:has-text('Stop notifications here')")
        page.click("#leave")
        wait_until(lambda: self.devices(self.ada) == [], "signing out removes the device")
        wait_until(lambda: page.evaluate("localStorage.subscription") is None, "the subscription of the browser ends")
        page.close()
        self.another_user_comes()
        if not is_firefox():
            self.permission_is_taken_back()
        self.window.close()

    def receives(self, page):
        """Shows, replaces and withdraws messages, which DevTools delivers."""
        alert = {"title": "Your turn", "body": "Chair 2", "silent": False, "withdrawn": [], "badge": 3, "tag": "n1",
                 "data": {"type": "notification", "notificationId": "n1"}}
        self.receive(page, alert, "the message is shown", lambda: self.shown(page) == [["n1", "Your turn", "Chair 2"]])
        # The next message of the same tag takes its place; one that was withdrawn goes.
        self.receive(page, alert | {"body": "Chair 3"}, "the newer message is shown",
                     lambda: self.shown(page) == [["n1", "Your turn", "Chair 3"]])
        self.receive(page, alert | {"tag": "n2", "withdrawn": ["n1"]}, "the withdrawn message is gone",
                     lambda: self.shown(page) == [["n2", "Your turn", "Chair 2"]])

        # What the user sees in a page leaves the screen, and the number follows.
        self.service.notify("ada", "seen-elsewhere")
        page.wait_for_selector("#notifications li")
        listed = json.loads(self.service.get("/v1/notifications", self.ada)[1])["items"][0]["id"]
        self.receive(page, alert | {"tag": listed}, "both are shown", lambda: len(self.shown(page)) == 2)
        self.service.call("PATCH", f"/v1/notifications/{listed}", {"seen": True}, self.ada)
        wait_until(lambda: [tag for tag, _, _ in self.shown(page)] == ["n2"], "the one that was seen is gone")

    def another_user_comes(self):
        """Another user of the browser does not receive the messages of the one who has not signed out."""
        page = self.open()
        page.click("#notify")
        page.wait_for_selector("#notify:has-text('Stop notifications here')")
        page.close()
        page = self.open(self.service.token("ben", "--lifetime", "1d"))
        wait_until(lambda: page.evaluate("localStorage.subscription") is None, "the subscription of the first user ends")
        page.wait_for_selector("#notify:has-text('Notify me on this device')")
        page.close()

    def permission_is_taken_back(self):
        """Without the permission this start registers nothing, and signing out still removes the device."""
        page = self.open()
        page.click("#notify")
        page.wait_for_selector("#notify:has-text('Stop notifications here')")
        target = self.window.new_cdp_session(page).send("Target.getTargetInfo")["targetInfo"]
        self.browser.new_browser_cdp_session().send("Browser.setPermission", {
            "permission": {"name": "notifications"}, "setting": "denied", "origin": self.service.url,
            "browserContextId": target["browserContextId"]})
        page.reload()
        page.wait_for_selector("#state[data-state=live]")
        page.wait_for_selector("#notify:has-text('Allow notifications in the browser')")
        self.shoot(page, "blocked")
        assert len(self.devices(self.ada)) > 0
        page.click("#leave")
        wait_until(lambda: self.devices(self.ada) == [], "signing out removes the device without the permission")
        wait_until(lambda: page.evaluate("localStorage.subscription") is None, "the subscription of the browser ends")
        page.close()


service, files = PushService("--drain-seconds=0"), Files()
try:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        Trial(browser, service).run()
        with ColdStart(browser, service, files) as device:
            assert device.start() == ColdStart.ITEMS
        browser.close()
finally:
    files.stop()
    service.stop()
print("cases: 2")

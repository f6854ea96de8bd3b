"""Tests writes from several tabs while the network and the service fail and the tabs are reloaded and closed. Each
write must be executed exactly once and in order (R-VIS-NFR-2.3, R-CUT-N-3).

    python outbox.py [--cycles 20] [--tabs 3] [--seed N] [--transport auto|xhr]

In each cycle one of five things happens while the outbox fills: the browser goes offline, the service is killed (kill
-9) or stopped during writes, connections are cut after random bytes, or nothing.
"""

import argparse
import contextlib
import random
import signal
import time
import urllib.parse

from playwright.sync_api import sync_playwright

from harness.browsers import is_firefox, launch
from harness.waiting import Failed, wait_until
from service import CuttingProxy, Files, Service, context

parser = argparse.ArgumentParser()
parser.add_argument("--cycles", type=int, default=20)
parser.add_argument("--tabs", type=int, default=3)
parser.add_argument("--seed", type=int, default=random.randrange(2**32))
parser.add_argument("--transport", choices=["auto", "xhr"], default="auto")
options = parser.parse_args()
print(f"SEED={options.seed}")
chance = random.Random(options.seed)

CONVERSATION = "talk"
PATH = f"/v1/conversations/{CONVERSATION}/messages"
# playwright cannot tell Firefox that it is offline.
KINDS = ([] if is_firefox() else ["offline"]) + ["killed", "stopped", "cut", "online"]


class Trial:
    def __init__(self, browser, files, service, proxy):
        self.browser, self.files, self.service, self.proxy = browser, files, service, proxy
        self.context = context(browser)
        self.ada = service.token("ada")
        self.home = self.address("ada")
        self.sent = []
        self.log = []
        self.kinds = dict.fromkeys(KINDS, 0)

    def address(self, user):
        query = {"url": self.proxy.url, "token": self.service.token(user), "transport": options.transport}
        return f"{self.files.url}/page.html?{urllib.parse.urlencode(query)}"

    def enter(self):
        page = self.context.new_page()
        page.goto(self.home)
        page.wait_for_function("window.isUp")
        return page

    def write(self, page, count):
        """Makes several writes in one tab in the same turn of the event loop."""
        texts = [f"{len(self.sent) + n}" for n in range(count)]
        self.sent.extend(texts)
        page.evaluate("""([path, texts]) => {
            for (const text of texts) {
                bell.send("POST", path, { text }).then((answer) => { answers[text] = answer.status; }, () => {});
            }
        }""", [PATH, texts])
        return page, texts

    def keep(self, written):
        """Waits until the writes are stored or done; from then on they must not be lost."""
        page, texts = written
        # `wait_for_function` would treat the promise itself as the result.
        wait_until(lambda: page.evaluate("texts => unstored(texts)", texts) == [], f"{texts} are stored")

    def fill(self):
        for _ in range(chance.randrange(1, 4)):
            self.keep(self.write(chance.choice(self.pages), chance.randrange(1, 6)))

    def cycle(self):
        kind = chance.choice(KINDS)
        self.kinds[kind] += 1
        self.log.append((time.time(), kind, len(self.sent)))
        begun = None
        if kind == "offline":
            self.context.set_offline(True)
            # The tabs learn it one after the other, and Chromium keeps connections that one of them opens meanwhile.
            self.proxy.set_network(False)
            for page in self.pages:
                page.wait_for_function("bell.connection.get().status === 'offline'")
        if kind in ("killed", "stopped"):
            # Some of these writes are in flight at that moment.
            begun = self.write(chance.choice(self.pages), chance.randrange(1, 6))
            self.service.kill(signal.SIGKILL if kind == "killed" else signal.SIGTERM)
            self.keep(begun)
        if kind == "cut":
            self.proxy.begin(0.8)
        count = self.proxy.cut_count
        self.fill()
        while kind == "cut" and self.proxy.cut_count == count:
            # On a slow machine a cut may take long to occur, and an outbox has a limit.
            wait_until(lambda: self.proxy.cut_count > count or len(self.pages[0].evaluate("stored()")) < 100, "there is room")
            self.fill()
        if kind in ("killed", "stopped"):
            self.without_service()
        closed = chance.choice(self.pages)
        if chance.random() < 0.3:
            closed.close()
        if kind == "offline":
            self.context.set_offline(False)
        self.proxy.set_network(True)
        self.proxy.begin(0)
        if closed.is_closed():
            self.pages[self.pages.index(closed)] = self.enter()
        if kind == "online" and chance.random() < 0.5:
            chance.choice(self.pages).reload()
        for page in [*self.pages, self.reader]:
            # Acts like a user that does not wait for the next automatic retry.
            page.wait_for_function("window.isUp")
            page.evaluate("bell.connection.get().status === 'live' || bell.retry()")
            page.wait_for_function("bell.connection.get().status === 'live'")

    def without_service(self):
        """Reloads tabs while the service is down; the files are still served."""
        for page in self.pages:
            page.wait_for_function("bell.connection.get().status !== 'live'")
            if chance.random() < 0.3:
                page.reload()
                page.wait_for_function("window.isUp")
        self.keep(self.write(chance.choice(self.pages), 2))
        self.service.start()

    def check(self):
        """Checks that all writes so far were executed once and in order, and that another user received them in this
        order."""
        for page in self.pages:
            page.wait_for_function("bell.outbox.get().waiting === 0")
        self.same("done", lambda: self.service.texts(CONVERSATION, self.ada))
        self.same("heard by another user", lambda: self.reader.evaluate("heard"))
        assert self.pages[0].evaluate("async () => (await stored()).length") == 0, "something is still stored"

    def same(self, what, find):
        with contextlib.suppress(Failed):
            wait_until(lambda: len(find()) >= len(self.sent), "all that was sent")
        found = find()
        if found == self.sent:
            return
        for page in [*self.pages, self.reader]:
            print(page.evaluate("async () => [await stored(), bell.outbox.get(), bell.connection.get(), refused, resyncs]"))
        lost = sorted(set(self.sent) - set(found), key=int)
        if lost:
            self.tell(lost[0])
        twice = sorted({text for text in found if found.count(text) > 1}, key=int)
        raise AssertionError(f"{len(found)} of {len(self.sent)} are {what}; lost: {lost[:20]}, twice: {twice[:20]}, "
                             f"the last: {found[-20:]}")

    def tell(self, text):
        """Prints everything that is known about a lost write."""
        print("what its page was told:", self.pages[0].evaluate("text => localStorage[text]", text))
        for at, kind, first in self.log:
            if abs(first - int(text)) < 40:
                print(f"{at:.3f} {kind}, from {first} on")
        seen = list(self.proxy.seen)
        carried = {connection for _, connection, _, data in seen if f'"text":"{text}"'.encode() in data}
        at = [time for time, _, _, data in seen if f'"text":"{text}"'.encode() in data]
        for time_, connection, left, data in seen:
            if connection in carried and abs(time_ - at[0]) < 2:
                print(f"{time_:.3f} {connection} {left}: {data[:60]} … {data[-300:]}")

    def run(self):
        self.service.post("/v1/conversations", {"id": CONVERSATION, "memberIds": ["ada", "ben"]})
        self.reader = context(self.browser).new_page()
        self.reader.goto(self.address("ben"))
        self.reader.wait_for_function("window.isUp && bell.connection.get().status === 'live'")
        self.pages = [self.enter() for _ in range(options.tabs)]
        for page in self.pages:
            page.wait_for_function("bell.connection.get().status === 'live'")
        begin = time.monotonic()
        for number in range(1, options.cycles + 1):
            self.cycle()
            if number % 50 == 0 or number == options.cycles:
                self.check()
                print(f"{number} cycles, {self.proxy.cut_count} cuts, {len(self.sent)} writes, "
                      f"{time.monotonic() - begin:.0f} s", flush=True)
        print(f"{options.cycles} cycles {self.kinds}, {self.proxy.cut_count} connections cut: {len(self.sent)} writes, "
              "each done once, in order")


service, files = Service("--drain-seconds=0"), Files()
proxy = CuttingProxy(service, chance)
try:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        Trial(browser, files, service, proxy).run()
        browser.close()
finally:
    proxy.stop()
    files.stop()
    service.stop()
print(f"cases: {options.cycles}")

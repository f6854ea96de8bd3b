"""Many tabs share one stream, and the test kills its holder repeatedly (CLIENT: one connection for all tabs).

    python tabs.py [--cycles 20] [--tabs 50] [--seed N] [--only worker|election] [--within-ms N]

A holder dies when its tab is closed, when its process is killed, or, as a worker, when it ends itself. Another holder
must then take over, and no tab may miss or repeat an event. The service promises the next holder within 2 s. Only a run
with --within-ms 2000, on an idle machine, judges that.
"""

import argparse
import json
import random
import time
import urllib.parse

from playwright.sync_api import Error, sync_playwright

from harness.browsers import is_firefox, launch
from harness.waiting import wait_until
from service import Files, Service, context

# The worker starts in time at one of so many starts, however busy the machine is.
STARTS_MAX = 40

parser = argparse.ArgumentParser()
parser.add_argument("--cycles", type=int, default=20)
parser.add_argument("--tabs", type=int, default=50)
parser.add_argument("--seed", type=int, default=random.randrange(2**32))
parser.add_argument("--within-ms", type=int, help="fail if the next holder took over later; without it the times are "
                                                  "only printed")
parser.add_argument("--only", choices=["worker", "election"])
options = parser.parse_args()
print(f"SEED={options.seed}")
chance = random.Random(options.seed)


class Tabs:
    def __init__(self, browser, files, service, mode):
        self.mode, self.service, self.user = mode, service, f"user-{mode}"
        self.context = context(browser)
        self.browser = browser
        query = {"url": service.url, "token": service.token(self.user)}
        if mode == "election":
            query["election"] = "1"
        self.address = f"{files.url}/page.html?{urllib.parse.urlencode(query)}"
        self.pages = {}
        self.log = []

    def open(self):
        page = self.context.new_page()
        page.goto(self.address, wait_until="commit")
        return page

    def settle(self, page):
        page.wait_for_function("window.isUp && bell.connection.get().status === 'live'")
        # The tab receives events from here on.
        self.pages[page] = len(self.log)

    def close(self):
        for page in self.pages:
            page.close()
        self.pages.clear()

    def send(self, count):
        for _ in range(count):
            event = f"{self.mode}-{len(self.log)}"
            self.log.append(event)
            self.service.notify(self.user, event)

    def check(self, final=False):
        """Checks that every tab received every event since it was opened, once and in order."""
        def heard(page):
            return page.evaluate("heard")
        for page, since in self.pages.items():
            wanted = self.log[since:]
            wait_until(lambda: len(heard(page)) >= len(wanted), f"a tab has {len(wanted)} events, not {len(heard(page))}")
            found = heard(page)
            assert found == wanted, f"heard {found[-10:]}, not {wanted[-10:]}"
            assert page.evaluate("resyncs") == 0, "a tab was told of a gap"

    def holder(self):
        """Returns the tab that opened the last stream; None for the worker."""
        opened = [page for page in self.pages if page.evaluate("streamsOpened") > 0]
        assert len(opened) <= 1, f"{len(opened)} tabs have opened streams"
        return opened[0] if opened else None

    def kill(self):
        """Ends the holder and returns how."""
        page = self.holder()
        if page is None:
            self.end_worker()
            return "worker"
        del self.pages[page]
        # Firefox gives no way to end one process of several.
        if is_firefox() or chance.random() < 0.5:
            page.close()
            return "closed"
        try:
            # The process of the tab ends at once, without notice.
            page.goto("chrome://crash")
        except Error:
            pass
        return "crashed"

    def end_worker(self):
        session = self.browser.new_browser_cdp_session()
        targets = session.send("Target.getTargets")["targetInfos"]
        for worker in [target for target in targets if target["type"] == "shared_worker"]:
            attached = session.send("Target.attachToTarget", {"targetId": worker["targetId"], "flatten": False})
            message = json.dumps({"id": 1, "method": "Runtime.evaluate", "params": {"expression": "self.close()"}})
            session.send("Target.sendMessageToTarget", {"sessionId": attached["sessionId"], "message": message})
        session.detach()

    def stream(self):
        """Returns the newest stream that any tab knows, and when it was opened."""
        return max((page.evaluate("streams.at(-1)") for page in self.pages), key=lambda it: it["at"])


def run(browser, files, service, mode):
    tabs = Tabs(browser, files, service, mode)
    tabs.settle(tabs.open())
    for _ in range(STARTS_MAX):
        if mode == "election" or tabs.holder() is None:
            break
        # On a busy machine a worker may start too late. A tab then holds the stream, as designed.
        tabs.close()
        tabs.settle(tabs.open())
    for page in [tabs.open() for _ in range(options.tabs - 1)]:
        tabs.settle(page)
    assert service.streams() == 1, f"{service.streams()} streams of {options.tabs} tabs"
    print(f"{mode}: {options.tabs} tabs are 1 stream", flush=True)
    if mode == "worker":
        assert tabs.holder() is None, "a tab holds the stream, although there is a worker"
    tabs.send(5)
    tabs.check()
    times, kinds = [], {}
    # No protocol ends a shared worker of Firefox alone.
    cycles = 0 if mode == "worker" and is_firefox() else options.cycles
    for cycle in range(cycles):
        tabs.send(chance.randrange(3))
        before = {page: page.evaluate("streams.length") for page in tabs.pages}
        killed_at = time.time() * 1000
        kind = tabs.kill()
        kinds[kind] = kinds.get(kind, 0) + 1
        tabs.send(chance.randrange(3))
        for page in tabs.pages:
            page.wait_for_function(f"streams.length > {before[page]}")
        taken = max(page.evaluate(f"streams[{before[page]}].at") for page in tabs.pages) - killed_at
        times.append(taken)
        tabs.send(1)
        tabs.check()
        if kind != "worker":
            tabs.settle(tabs.open())
        if mode == "worker" and kind != "worker" and chance.random() < 0.3:
            # All tabs are closed and opened again: the worker holds the stream again.
            tabs.close()
            for page in [tabs.open() for _ in range(3)]:
                tabs.settle(page)
            # Tabs do not receive events that were sent before they were opened.
    wait_until(lambda: service.streams() == 1, f"1 stream, not {service.streams()}")
    if times:
        times.sort()
        print(f"{mode}: {cycles} holders killed {kinds}, {len(tabs.log)} events, nothing missed; the next one served after "
              f"{times[len(times) // 2]:.0f} ms (median), {times[-1]:.0f} ms (slowest)", flush=True)
        assert options.within_ms is None or times[-1] < options.within_ms, f"{times[-1]:.0f} ms"
    tabs.context.close()
    return max(cycles, 1)


service, files = Service(), Files()
try:
    with sync_playwright() as playwright:
        browser, cases = launch(playwright), 0
        for mode in ["worker", "election"]:
            if options.only in (None, mode):
                cases += run(browser, files, service, mode)
                wait_until(lambda: service.streams() == 0, "no stream after the last tab")
        browser.close()
finally:
    files.stop()
    service.stop()
print(f"cases: {cases}")

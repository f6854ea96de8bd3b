"""A page that has kept its state on the device (bellhop.js/offline), and starts without the service."""

import urllib.parse

from harness.waiting import wait_until
from service import context


class ColdStart:
    """The device, while the service does not run. At the end the service runs again.

        with ColdStart(browser, service, files) as device:
            device.start()
    """

    # The number of notifications that the device keeps.
    ITEMS = 5

    def __init__(self, browser, service, files):
        self.service = service
        query = {"url": service.url, "token": service.token("cold", "--lifetime", "1d"), "user": "cold", "offline": "1",
                 "bundles": "1"}
        self.address = f"{files.url}/page.html?{urllib.parse.urlencode(query)}"
        self.window = context(browser)
        self.page = self.window.new_page()
        self.milliseconds = self.milliseconds_of_page = None

    def __enter__(self):
        page = self.page
        page.goto(self.address)
        page.wait_for_function("window.isUp && bell.connection.get().status === 'live'")
        for number in range(self.ITEMS):
            self.service.notify("cold", f"cold-{number}")
        for shown in ("bell.notifications.get().items.length", "bell.badges.get().bell"):
            page.wait_for_function(f"{shown} === {self.ITEMS}")
        wait_until(lambda: page.evaluate("keptItems()") == self.ITEMS, "the list is stored")
        self.service.kill()
        return self

    def __exit__(self, *_):
        self.window.close()
        self.service.start()

    def start(self):
        """Starts the page and returns the number of notifications on the screen. `milliseconds` is the time from connect()
        until the list is drawn, and `milliseconds_of_page` the time from the beginning of the navigation."""
        self.page.goto("about:blank")
        self.page.goto(self.address)
        self.page.wait_for_function("window.shownAt")
        assert self.page.evaluate("bell.connection.get().status") != "live"
        self.milliseconds = self.page.evaluate("shownAt - connectedAt")
        self.milliseconds_of_page = self.page.evaluate("shownAt")
        return self.page.evaluate("document.querySelectorAll('#list li').length")

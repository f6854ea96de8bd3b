#!/usr/bin/env python3
"""Tests the page at / in a real Chromium against the real service: its texts without a token, its live state, the users
of `bellhop demo`, keyboard use, and accessibility (axe).

    page.py [--shots FOLDER] [--quick] [--files] [--only NAME …]

With --shots, screenshots of each state are written to FOLDER: wide and narrow, light and dark. With --quick, axe checks
two of these four. With --files, the browser gets the page's files from the source folder, so that a change of the page
needs no build."""
import argparse
import base64
import contextlib
import functools
import itertools
import json
import os
import re
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from harness.browsers import is_firefox, launch
from harness.waiting import PATIENCE_SECONDS, wait_until
from service import ROOT, Service, context

OTHER_SECRET = "another secret, of tests as well, for HS256, 48 bytes"
LIVE = "#state[data-state=live]"
# Lifetimes of tokens that expire during a test, in seconds. Longer ones are tried if the machine is too busy for the
# first.
LIVES = (8, 16, 32, 64, 128)
SIZES = {"wide": 1400, "narrow": 390}
FILES = ROOT / "Sources/console"
# Records every state that the page shows, from its start.
RECORDER = """
    window.states = [];
    new MutationObserver((changes) => {
        for (const { target } of changes) if (target.id === "state") states.push(target.innerText);
    }).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-state"] });
"""


def end_of(token):
    """Returns the time at which a token expires, in seconds since 1970."""
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"]


def members(description, schema):
    """Returns the names of the members of a schema, with those of the schemas that it refers to."""
    if "$ref" in schema:
        found = description
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")]
        return members(description, found)
    parts = [part for name in ("allOf", "oneOf", "anyOf") for part in schema.get(name, ())]
    if schema.get("type") == "array":
        parts.append(schema.get("items", {}))
    return set(schema.get("properties", ())).union(*(members(description, part) for part in parts))


class PageService(Service):
    """The service with the settings of `make run`, and more flags."""

    def __init__(self, *more):
        self.more = more
        super().__init__()

    @functools.cached_property
    def ada(self):
        return self.token("ada", "--lifetime", "1d")

    def start(self):
        self.flags = ["--drain-seconds=0", f"--console-tokens={self.ada},{self.backend}", *self.more]
        super().start()

    def demo(self, *more):
        """Runs `bellhop demo` and returns the link to the console that it prints."""
        text = self.run("demo", "--pace", "0", *more, BELLHOP_URL=self.url)
        return next(word for word in text.split() if word.startswith(f"{self.url}/#token="))



class Tests:
    def __init__(self, browser, service, options):
        self.browser, self.service, self.shots, self.files = browser, service, options.shots, options.files
        both = ("light", "dark")
        # The color schemes that axe checks, by size.
        self.schemes = {"wide": both[:1], "narrow": both[1:]} if options.quick else {"wide": both, "narrow": both}
        self.complaints = []

    # MARK: Pages

    @contextlib.contextmanager
    def page(self, width=1400, scheme="light", worker=True, expects_errors=False):
        window = context(self.browser, viewport={"width": width, "height": 900}, color_scheme=scheme)
        if not worker:
            window.add_init_script("delete window.SharedWorker")
        if self.files:
            window.route(re.compile(r"^[^?#]*(/console/[\w.-]+|/docs|:\d+/)([?#].*)?$"), self.serve_file)
        window.add_init_script(RECORDER)
        page = window.new_page()
        # Reports violations of the content policy and uncaught errors.
        page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        page.on("console", lambda line: line.type == "error" and (
            None if expects_errors and "Failed to load resource" in line.text else self.complaints.append(line.text)))
        try:
            yield page
        finally:
            window.close()
        assert not self.complaints, self.complaints

    def serve_file(self, route):
        """Answers with a file of the source folder, and with the content policy of the service's own answer."""
        name = urllib.parse.urlsplit(route.request.url).path.split("/")[-1]
        path = FILES / ({"": "console.html", "docs": "docs.html"}.get(name, name))
        if not path.exists():
            return route.continue_()
        kind = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}[path.suffix]
        headers = {"Content-Type": f"{kind}; charset=utf-8"}
        if path.suffix == ".html":
            headers["Content-Security-Policy"] = route.fetch().headers["content-security-policy"]
        route.fulfill(body=path.read_text(), headers=headers)

    def open(self, page, token=None, more=""):
        def agree(question):
            question.accept()

        page.goto("about:blank")
        page.on("dialog", agree)
        page.goto(f"{self.service.url}/#token={token or self.service.ada}{more}")
        page.wait_for_selector(LIVE)
        page.remove_listener("dialog", agree)

    @property
    def with_backend(self):
        return f"&backend={self.service.backend}"

    def shoot(self, page, name):
        if self.shots:
            page.evaluate("scrollTo(0, 0)")
            page.screenshot(path=os.path.join(self.shots, f"{name}.png"), full_page=True)

    def state(self, page):
        return page.get_attribute("#state", "data-state")

    def states(self, page, since=0):
        """Returns the states that the page has shown. Waits until they are stable, so that a wrong one would appear."""
        page.wait_for_timeout(500)
        return set(page.evaluate("since => states.slice(since)", since))

    def shown(self, page):
        """Returns the number of states that the page has shown so far."""
        return page.evaluate("states.length")

    def closed(self, token):
        """Opens a stream, does not renew its token, and returns once the service has closed it at the token's expiry."""
        request = urllib.request.Request(f"{self.service.url}/v1/stream", headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as stream:
                stream.read()
        except urllib.error.HTTPError as refusal:
            assert refusal.code == 401, refusal.code
        wait_until(lambda: time.time() >= end_of(token), "the token's end")

    def send_test_event(self, page):
        page.click("#try")
        page.wait_for_selector("#try:not([aria-busy])")
        assert not page.is_visible("#problem")

    # MARK: First use

    def page_without_token_explains_itself_and_offers_development_tokens(self):
        with self.page() as page:
            page.goto(self.service.url)
            assert page.is_visible("#welcome h1") and not page.is_visible("#views") and not page.is_visible("#state")
            page.wait_for_selector("#offer:not([hidden])")
            assert page.locator("#offered button").all_inner_texts() == \
                ["Continue as ada", "Continue as backend (service_role)"]
            page.fill("#token", "no token")
            page.click("#open > button")
            assert "three parts" in page.inner_text("#open-problem")
            page.click("text=Continue as ada")
            page.wait_for_selector(LIVE)
            assert page.inner_text("#user") == "ada"
            assert "token" not in page.url

    def test_event_arrives_with_its_latency(self):
        with self.page() as page:
            self.open(page)
            self.send_test_event(page)
            assert "follow:changed" in page.inner_text("#shot-what")
            self.open(page, more=self.with_backend)
            self.send_test_event(page)
            assert "notification:created" in page.inner_text("#shot-what")
            assert 0 < float(page.inner_text("#shot-ms"))
            page.wait_for_selector("#notifications li >> text=Check-up")
            unseen = page.locator("#notifications li.note:not(.seen)").count()
            assert page.inner_text("#badges [data-key=bell] b") == str(unseen)

    def empty_cards_are_hidden(self):
        with self.page() as page:
            self.open(page, self.service.token("nobody-yet"))
            page.wait_for_selector("#nothing:not([hidden]):has-text('There is nothing for nobody-yet yet')")
            for name in ("notifications", "conversations", "bookings", "queue", "music", "ranks", "feed", "rows"):
                assert not page.is_visible(f"#card-{name}"), name
            self.shoot(page, "empty")

    def reload_keeps_the_session_and_updates_times(self):
        with self.page() as page:
            self.open(page, more=self.with_backend)
            self.send_test_event(page)
            page.reload()
            page.wait_for_selector(LIVE)
            assert page.inner_text("#user") == "ada"
            first = page.wait_for_selector("#notifications time")
            before = first.inner_text()
            page.wait_for_function("([node, before]) => node.textContent !== before", arg=[first, before])
            page.click("#leave")
            page.wait_for_selector("#welcome:not([hidden])")
            page.reload()
            page.wait_for_selector("#welcome:not([hidden])")

    def all_tabs_share_one_stream_of_the_served_worker(self):
        with self.page() as page:
            self.open(page, self.service.token("tabs"))
            second = page.context.new_page()
            self.open(second, self.service.token("tabs"))
            if not is_firefox():
                cdp = self.browser.new_browser_cdp_session()
                urls = lambda: [info["url"] for info in cdp.send("Target.getTargets")["targetInfos"]
                                if info["type"] == "shared_worker"]
                wait_until(lambda: f"{self.service.url}/bellhop-worker.js" in urls(), "the worker runs")
            streams = lambda: {one.text_content("#connection [data-key=Stream] dd") for one in (page, second)}
            for one in (page, second):
                one.goto(f"{self.service.url}/#develop")
            wait_until(lambda: len(streams()) == 1, "both pages name the same stream")

    # MARK: Live state

    def page_is_live_again_after_a_restart_of_the_service(self):
        with self.page(expects_errors=True) as page:
            self.open(page, more=self.with_backend)
            self.send_test_event(page)
            before = self.shown(page)
            self.service.kill(signal.SIGTERM)
            try:
                page.wait_for_selector("#state[data-state=waiting]")
                page.wait_for_selector("#notice-more:has-text('Next retry in'), #notice-more:has-text('Retrying')")
                # The page retries without success.
                left = page.evaluate("before => states.findIndex((one, at) => at >= before && one !== 'Live')", before)
                page.wait_for_function(
                    "left => /Waiting.*Connecting.*Waiting/.test(states.slice(left).join())", arg=left)
                self.shoot(page, "waiting")
                seen = self.states(page, left)
                assert seen == {"Waiting", "Connecting"}, seen
            finally:
                self.service.start()
            page.wait_for_selector(LIVE)
            assert not page.is_visible("#notice")
            self.send_test_event(page)
            page.click("text=Develop")
            assert page.locator("#timeline li[data-state=live]").count() == 2

    def page_is_offline_while_the_device_is_offline(self):
        # Playwright disables the network only for the page, so the page itself must hold the stream.
        with self.page(worker=False, expects_errors=True) as page:
            self.open(page)
            page.context.set_offline(True)
            page.wait_for_selector("#state[data-state=offline]")
            offline = self.shown(page)
            assert "offline" in page.inner_text("#notice-text")
            page.wait_for_function("since => states.length > since", arg=offline)
            # The report of the device is a hint: the client tries all the same, rarely.
            seen = self.states(page, offline)
            assert "Offline" in seen and seen <= {"Offline", "Connecting"}, seen
            assert page.is_disabled("#try")
            self.shoot(page, "offline")
            page.context.set_offline(False)
            page.wait_for_selector(LIVE)

    def silent_connection_shows_the_age_of_its_last_data(self):
        # The clock of the page jumps, so that the page itself must hold the stream.
        with self.page(worker=False, expects_errors=True) as page:
            page.clock.install()
            self.open(page)
            # New streams fail, so that the state stays.
            page.route("**/v1/stream?*", lambda route: route.abort())
            page.route("**/v1/stream", lambda route: route.abort())
            page.clock.fast_forward(61_000)
            page.wait_for_selector("#state:not([data-state=live])")
            page.wait_for_selector("#notice-more:has-text('1 min ago')")

    def wrong_token_is_refused_and_a_valid_one_accepted(self):
        with self.page(expects_errors=True) as page:
            page.goto(f"{self.service.url}/#token={self.service.token('ada', secret=OTHER_SECRET)}")
            page.wait_for_selector("#state[data-state=refused]")
            assert "Live" not in self.states(page)
            assert page.inner_text("#state") == "Refused"
            assert "refuses" in page.inner_text("#notice-text")
            self.shoot(page, "refused")
            page.fill("#renewal-token", self.service.ada)
            page.press("#renewal-token", "Enter")
            page.wait_for_selector(LIVE)

    def link_replaces_a_session_only_if_the_person_agrees(self):
        eve, attack = self.service.token("eve"), f"{self.service.url}/#token={self.service.token('mallory')}"
        with self.page() as page:
            self.open(page, eve)
            for answer, loads, user in ((False, False, "eve"), (False, True, "eve"), (True, False, "mallory")):
                questions = []
                page.once("dialog", lambda dialog: (questions.append(dialog.message),
                                                    dialog.accept() if answer else dialog.dismiss()))
                if loads:
                    page.goto("about:blank")
                page.goto(attack)
                page.wait_for_function("name => document.querySelector('#user').textContent === name", arg=user)
                page.wait_for_selector(LIVE)
                assert len(questions) == 1 and "eve" in questions[0] and "mallory" in questions[0], questions
                assert "token=" not in page.evaluate("location.hash"), "the token stays in the address"

    def token_is_renewed_without_a_reconnection(self):
        assert any(self.is_renewed(seconds) for seconds in LIVES), "no token was renewed before its end"

    def is_renewed(self, seconds):
        """Returns false if this machine was too slow to renew a token with this lifetime."""
        user = f"eve-{seconds}"
        successor = self.service.token(user, "--lifetime", "1h")
        token = self.service.token(user, "--lifetime", f"{seconds}s")
        # A token that ends too early is refused.
        with self.page(expects_errors=True) as page:
            page.goto(f"{self.service.url}/#token={token}")
            page.wait_for_selector(f"{LIVE}, #state[data-state=expired]")
            page.wait_for_selector("#renewal:not([hidden])")
            if self.state(page) != "live":
                return False
            notice = page.inner_text("#notice-text")
            stream = page.text_content("#connection [data-key=Stream] dd")
            old = page.text_content("#token-raw")
            page.fill("#renewal-token", successor)
            page.click("#renewal button")
            page.wait_for_function("old => document.querySelector('#token-raw').textContent !== old", arg=old)
            # The stream's token is renewed a moment later.
            if time.time() > end_of(token) - seconds / 16:
                return False
            assert "expires soon" in notice, notice
            assert not page.is_visible("#renewal")
            # The first token has expired. The stream is still the same and was live all the time.
            self.closed(token)
            timeline = page.locator("#timeline").text_content()
            assert self.state(page) == "live", timeline
            assert self.states(page, page.evaluate("states.indexOf('Live')")) == {"Live"}, timeline
            assert page.text_content("#connection [data-key=Stream] dd") == stream, timeline
            return True

    def expired_token_is_reported_and_its_successor_accepted(self):
        assert any(self.is_reported_as_expired(life) for life in (2, *LIVES)), "no token was live before it expired"

    def is_reported_as_expired(self, seconds):
        """Returns false if this machine was too slow to open a stream with a token of this lifetime."""
        with self.page(expects_errors=True) as page:
            page.goto(f"{self.service.url}/#token={self.service.token('eve', '--lifetime', f'{seconds}s')}")
            page.wait_for_selector("#state[data-state=expired]")
            expired = self.shown(page)
            if "Live" not in self.states(page):
                return False
            assert "has expired" in page.inner_text("#notice-text")
            page.wait_for_function("since => states.length > since", arg=expired)
            assert self.states(page, expired) == {"Expired"}
            self.shoot(page, "expired")
            page.fill("#renewal-token", self.service.token("eve"))
            page.press("#renewal-token", "Enter")
            page.wait_for_selector(LIVE)
            return True

    # MARK: Developers

    def events_are_filtered_paused_opened_and_explained(self):
        with self.page() as page:
            page.context.grant_permissions(["clipboard-read", "clipboard-write"])
            self.open(page, more=self.with_backend)
            self.send_test_event(page)
            page.click("text=Develop")
            page.fill("#events-filter", "notification:")
            page.wait_for_function(
                "() => [...document.querySelectorAll('#log b')].every(one => one.textContent.startsWith('notification:'))")
            page.locator("#log summary").first.click()
            assert '"eventId": "test-' in page.inner_text("#log pre")
            page.click("#log >> text=Copy as curl")
            command = page.evaluate("navigator.clipboard.readText()")
            assert command.startswith("curl -N ") and f"{self.service.url}/v1/stream" in command
            page.click("text=Explain delivery")
            page.wait_for_selector(".verdict.yes:has-text('You receive it. The token has the key user:ada.')")
            page.fill("#explain-whom", '{"sub": "ben"}')
            page.click("#explain button")
            page.wait_for_selector(".verdict.no:has-text('ben does not receive it.')")
            page.click("#events-pause")
            count = page.locator("#log li").count()
            page.evaluate("document.querySelector('#try').click()")
            page.wait_for_selector("#events-count:has-text('received while paused')")
            assert page.locator("#log li").count() == count
            page.click("#events-pause")
            page.wait_for_function("count => document.querySelectorAll('#log li').length > count", arg=count)

    def token_is_decoded_and_subscriptions_are_checked(self):
        with self.page(expects_errors=True) as page:
            self.open(page)
            page.click("text=Develop")
            page.wait_for_selector("#claims [data-key=Scope] >> text=user:ada")
            assert '"sub": "ada"' in page.text_content("#token-raw")
            page.fill("#topic", "queue:nowhere")
            page.click("#watch-topic button")
            page.wait_for_selector("#connection [data-key=Topics] >> text=queue:nowhere")
            page.click("#watches button")
            page.wait_for_selector("#connection [data-key=Topics]:not(:has-text('queue:nowhere'))")
            page.fill("#table", "no_such_table")
            page.click("#watch-table button")
            page.wait_for_selector("#watch-problem:not([hidden])")
            assert page.locator("#watches li").count() == 0
            page.fill("#table", "homework")
            page.fill("#filter", "")
            page.click("#watch-table button")
            page.wait_for_selector("#watches >> text=homework")
            assert self.state(page) == "live"

    def event_is_published_from_the_page(self):
        with self.page(expects_errors=True) as page:
            self.open(page)
            page.click("text=Develop")
            assert page.input_value("#publish-to") == "user:ada"
            page.click("#publish button")
            page.wait_for_selector("#publish-problem:has-text('requires a backend’s token')")
            page.fill("#publish-backend", self.service.backend)
            page.fill("#publish-data", "{no JSON")
            page.click("#publish button")
            page.wait_for_selector("#publish-problem:has-text('not valid JSON')")
            page.fill("#publish-data", '{"orderId": "o1", "status": "ready"}')
            page.fill("#publish-event", "error")
            page.click("#publish button")
            page.wait_for_selector("#publish-problem:has-text('/event')")
            page.fill("#publish-event", "order:changed")
            page.click("#publish button")
            page.wait_for_selector("#published:has-text('Published order:changed')")
            page.wait_for_selector("#log li:has-text('order:changed')")
            assert not page.is_visible("#publish-problem") and not page.is_visible("#publish-backend-part")
            page.select_option("#publish-kind", "topic")
            page.fill("#publish-to", "order:o1")
            page.click("#publish button")
            page.wait_for_selector("#publish-problem:has-text('/topic')")

    # MARK: Operators

    def operations_are_shown_to_authorized_callers(self):
        with self.page(expects_errors=True) as page:
            self.open(page)
            page.wait_for_selector("#claims [data-key=Role]", state="attached")
            assert not page.is_visible("#to-operations")
            page.goto(f"{self.service.url}/#operations")
            assert page.is_visible("#view-live") and not page.is_visible("#view-operations")
            self.open(page, self.service.backend)
            page.click("#to-operations")
            page.wait_for_selector("#plots svg")
            assert page.locator("#plots .plot").count() == 8
            page.wait_for_selector("svg[aria-label^='Requests: 0.'], svg[aria-label^='Requests: 1']")
            assert not page.is_visible("#card-replicas")
            self.plots_have_ticks_and_values(page)
            page.fill("#accuracy-shop", "nowhere")
            page.click("#accuracy-form button")
            page.wait_for_function("() => document.querySelector('#accuracy').textContent !== ''")

    def plots_have_ticks_and_values(self, page):
        plot = page.locator(".plot[aria-label=Memory]")
        top, middle, bottom = (float(text.replace(",", "")) for text in plot.locator(".tick").all_inner_texts())
        assert top == 2 * middle > bottom == 0, (top, middle, bottom)
        assert "1 min ago" in plot.locator(".axis").inner_text() and "now" in plot.locator(".axis").inner_text()
        drawing = plot.locator(".drawing")
        assert not drawing.locator(".values").is_visible()
        drawing.hover()
        shown = drawing.locator(".values").inner_text()
        assert "MB" in shown and ":" in shown, shown
        # The values stay while new samples are drawn.
        samples = "() => document.querySelector('.plot[aria-label=Memory] .series').getAttribute('d').match(/[ML]/g).length"
        count = page.evaluate(samples)
        page.wait_for_function(f"count => ({samples})() > count", arg=count)
        assert drawing.locator(".values").inner_text() == shown
        page.mouse.move(0, 0)
        drawing.focus()
        page.keyboard.press("ArrowLeft")
        assert "MB" in drawing.locator(".values").inner_text()
        drawing.blur()
        assert not drawing.locator(".values").is_visible()

    def replicas_are_shown_individually_and_in_total(self):
        # A load balancer that alternates between two services. One has answered many more requests than the other, so a
        # rate across both would be in the hundreds.
        other = Service("--drain-seconds=0")
        try:
            for _ in range(2000):
                other.get("/healthz")
            turn = itertools.cycle((self.service, other))

            def balance(route):
                # Fetched here: Firefox would treat another origin as a redirect.
                route.fulfill(response=route.fetch(url=f"{next(turn).url}/metrics"))

            with self.page() as page:
                page.route("**/metrics", balance)
                self.open(page, self.service.backend)
                page.click("#to-operations")
                page.wait_for_selector("#card-replicas:not([hidden])")
                page.wait_for_function("() => document.querySelectorAll('#replicas tr').length === 2")
                names = page.locator("#replica option").all_inner_texts()
                assert names[0] == "Sum of all replicas" and len(set(names)) == 3, names
                figure = "() => document.querySelector('.plot[aria-label=\"NAME\"] .now b').textContent"
                requests = figure.replace("NAME", "Requests")
                rates = set()
                for _ in range(4):
                    before = page.locator(".plot[aria-label=Requests] .series").get_attribute("d")
                    page.wait_for_function(
                        "before => document.querySelector('.plot[aria-label=Requests] .series').getAttribute('d') !== before", arg=before)
                    rates.add(page.evaluate(requests))
                assert all(rate == "–" or float(rate.replace(",", "")) < 50 for rate in rates), rates
                memory = figure.replace("NAME", "Memory")
                shown = lambda: float(page.evaluate(memory).replace(",", ""))
                summed, each = shown(), []
                for index in (1, 2):
                    page.select_option("#replica", index=index)
                    each.append(shown())
                assert min(each) > 0 and abs(summed - sum(each)) < summed / 5, (summed, each)
                page.select_option("#replica", index=0)
                page.wait_for_selector("#operations-note:has-text('Figures of 2 replicas')")
                for size in SIZES:
                    page.set_viewport_size({"width": SIZES[size], "height": 900})
                    self.look(page, "replicas", size)
        finally:
            other.stop()

    # MARK: The demo

    def demo_fills_the_cards(self):
        link = self.service.demo("--acts", "120")
        with self.page() as page:
            page.goto(link)
            page.wait_for_selector(LIVE)
            for name in ("badges", "notifications", "conversations", "queue", "music", "ranks", "feed"):
                page.wait_for_selector(f"#card-{name}:not([hidden])")
            page.click("#music button[data-name=up] >> nth=0")
            page.wait_for_selector("#music button[data-name=up][aria-pressed]")
            page.wait_for_selector("#state[data-state=live]")
            first = page.get_attribute("#notifications li >> nth=0", "data-key")
            page.locator("#notifications [data-name=archive]").first.click()
            page.wait_for_selector(f"#notifications [data-key='{first}']", state="detached")
            assert not page.is_visible("#problem")
            self.send_test_event(page)
        self.everywhere("demo", link)

    def school_demo_shows_stale_queries(self):
        link = self.service.demo("--school", "--acts", "1")
        with self.page() as page:
            page.goto(link)
            page.wait_for_selector(LIVE)
            self.service.demo("--school", "--acts", "4")
            page.wait_for_selector("#card-rows:not([hidden]) .tag.stale")
            assert page.inner_text("#user") == "ruth"
            self.shoot(page, "school")

    def everywhere(self, name, link):
        """Checks that no view is wider than the window and that axe finds nothing serious: wide and narrow, light and
        dark."""
        for size in SIZES:
            with self.page(SIZES[size]) as page:
                page.goto(self.service.url)
                page.wait_for_selector("#offer:not([hidden])")
                self.look(page, "welcome", size)
                page.goto(link)
                page.wait_for_selector(LIVE)
                page.wait_for_selector("#card-feed:not([hidden])")
                for _ in range(3):
                    self.send_test_event(page)
                self.look(page, name, size)
                page.click("#views >> text=Develop")
                page.locator("#log summary").first.click()
                page.click("text=Explain delivery")
                page.wait_for_selector(".verdict")
                self.look(page, "develop", size)
                self.open(page, self.service.backend, "&shop=demo-shop")
                page.click("#to-operations")
                page.wait_for_selector("#plots svg")
                page.click("#accuracy-form button")
                page.wait_for_function("() => document.querySelector('#accuracy').textContent !== ''")
                # The demo serves its customers within seconds, which keeps the promise of 0 minutes.
                accuracy = page.inner_text("#accuracy")
                assert not re.search(r"(?<!\d)0 %", accuracy), accuracy
                if self.shots:
                    page.wait_for_timeout(20_000)
                self.look(page, "operations", size)

    def look(self, page, name, size):
        """Checks a view in each color scheme: axe finds nothing serious, and the view fits into the window."""
        for scheme in self.schemes[size]:
            page.emulate_media(color_scheme=scheme)
            # A text that is still fading in has not reached its final contrast.
            page.wait_for_function("() => document.getAnimations().every(one => one.playState === 'finished')")
            view = f"{name}-{size}-{scheme}"
            self.shoot(page, view)
            assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size], f"{view} is wider than the window"
            found = Axe().run(page).response["violations"]
            serious = [f"{one['id']}: {one['nodes'][0]['html'][:160]}" for one in found
                       if one["impact"] in ("serious", "critical")]
            assert not serious, f"{view}: {serious}"

    # MARK: The API

    @contextlib.contextmanager
    def reference(self, place="", **options):
        """Opens the API reference at a place."""
        with self.page(**options) as page:
            page.goto(f"{self.service.url}/docs#{place}")
            page.wait_for_selector("#view h1")
            yield page

    def every_operation_is_shown_with_its_schema(self):
        description = json.loads(self.service.get("/openapi.json")[1])
        found = 0
        with self.reference() as page:
            for path, item in description["paths"].items():
                for method in ("get", "put", "post", "patch", "delete"):
                    if method not in item:
                        continue
                    found += 1
                    self.operation_is_shown(page, description, method, path, item[method])
            for name in description["paths"]["/v1/stream"]["get"]["x-events"]:
                self.shown_text(page, f"event-{name}")
            for name in description["components"]["schemas"]:
                self.shown_text(page, f"schema-{name}")
            listed = page.locator("#contents .method").count()
        assert found > 100 and listed == found + len(description["webhooks"]), (found, listed)

    def shown_text(self, page, place):
        """Goes to a place of the reference and returns its text, with every folded part open."""
        page.evaluate("place => { location.hash = place; }", place)
        page.wait_for_selector(f"[id='{place}']")
        # Opening a part builds parts that can be opened in turn.
        text = page.evaluate("""async () => {
            const closed = () => [...document.querySelectorAll("#view details:not([open]):not(.attempt)")];
            for (let round = 0; round < 12 && closed().length > 0; round += 1) {
                for (const details of closed()) details.open = true;
                await new Promise((done) => setTimeout(done));
            }
            return document.querySelector("#view").innerText;
        }""")
        for sign in ("[object", "undefined", "|--", "| --"):
            assert sign not in text, f"{place} shows {sign}: {text[max(0, text.find(sign) - 80):][:160]}"
        assert not any(line.lstrip().startswith("|") for line in text.splitlines()), f"{place} shows the pipes of a table"
        return text

    def operation_is_shown(self, page, description, method, path, operation):
        place = operation["operationId"]
        text = self.shown_text(page, place)
        assert page.inner_text(".operation > .address") == f"{method.upper()}\n{path}", place
        entry = page.locator(f"#contents a[href='#{place}']").text_content()
        assert method.upper() in entry and path in entry, f"{place} is listed as {entry}"
        assert "curl" in text, f"{place} has no example"
        for status in operation["responses"]:
            assert status in text, f"{place} does not show the response {status}"
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if body:
            shown = set(page.locator(".body .name").all_inner_texts())
            missing = members(description, body) - shown
            assert not missing, f"{place} does not show {sorted(missing)} of its body, only {sorted(shown)}"
            assert members(description, body) or page.inner_text(".body .type"), place
        height = page.evaluate("document.documentElement.scrollHeight")
        assert height < 40_000, f"{place} is {height} px high"

    def api_reference_is_shown_searched_and_called(self):
        for size in SIZES:
            with self.reference(width=SIZES[size]) as page:
                self.look(page, "api-overview", size)
                page.goto(f"{self.service.url}/docs#postEvent")
                page.wait_for_selector("#postEvent table")
                self.look(page, "api-operation", size)
                page.goto(f"{self.service.url}/docs#group-queue")
                page.wait_for_selector(".index")
                self.look(page, "api-group", size)
                page.goto(f"{self.service.url}/docs#schema-QueueStatus")
                page.wait_for_selector(".shape")
                self.look(page, "api-schema", size)
                page.goto(f"{self.service.url}/docs#getBadges")
                badges = page.locator("#getBadges")
                badges.locator("text=Try it").click()
                page.fill("#token", self.service.ada)
                badges.locator("button.main").click()
                page.wait_for_selector("#getBadges .answer >> text=asOf")
                assert badges.locator(".answer b").first.inner_text() == "200"
                badges.locator("text=As curl").click()
                command = badges.locator(".answer pre").inner_text()
                assert "/v1/badges" in command and self.service.ada not in command, command
                self.look(page, "api-tried", size)
        with self.reference() as page:
            page.keyboard.press("/")
            page.keyboard.type("queue_closed no-such-word")
            assert page.inner_text("#found") == "No entry contains all these words."
            page.fill("#find", "queue entries walk")
            count = page.locator("#contents li:visible").count()
            assert 0 < count < 20, count
            page.keyboard.press("Enter")
            page.wait_for_selector("article.operation")
            page.keyboard.press("/")
            page.keyboard.press("Escape")
            assert page.inner_text("#found") == ""
            page.goto(f"{self.service.url}/docs#openStream")
            page.locator("#openStream >> text=Try it").click()
            page.fill("#token", self.service.ada)
            page.locator("#openStream button.main").click()
            page.wait_for_selector("#openStream .answer >> text=stream:ready")
            page.locator("#openStream button", has_text="Stop").click()
            # The console uses the same token.
            page.goto(self.service.url)
            page.wait_for_selector(LIVE)

    # MARK: Feature sets

    def page_of_a_service_with_the_bell_alone_has_nothing_else(self):
        service, self.service = self.service, PageService("--features=bell")
        try:
            asked = []
            with self.page() as page:
                page.on("request", lambda request: asked.append(urllib.parse.urlsplit(request.url).path))
                self.open(page)
                # Without a backend token and without posts, the user can cause no event.
                assert not page.is_visible("#card-try"), page.inner_text("#card-try")
                self.open(page, more=self.with_backend)
                self.send_test_event(page)
                assert "notification:created" in page.inner_text("#shot-what")
                page.wait_for_selector("#badges [data-key=bell]")
                assert page.locator("#badges .badge").count() == 2, page.inner_text("#badges")
                page.click("#views a >> text=Develop")
                page.wait_for_selector("#view-develop:not([hidden])")
                assert page.is_visible("#watch-topic") and not page.is_visible("#watch-table")
                assert not page.is_visible("#publish") and not page.is_visible("#explain")
                self.shoot(page, "bell-alone")
            others = [path for path in asked if re.search("conversations|requests|feed|bookings|shops|challenges|users", path)]
            assert not others, others
            with self.reference() as page:
                text = page.inner_text("#contents")
                assert "notifications" in text.lower()
                for other in ("/v1/conversations", "/v1/posts", "/v1/shops", "/v1/changes", "/v1/publish", "message:created"):
                    assert other not in text, other
                self.shoot(page, "bell-alone-api")
        finally:
            self.service.stop()
            self.service = service

    # MARK: By keyboard

    def page_is_usable_by_keyboard(self):
        with self.page() as page:
            page.goto(self.service.url)
            page.wait_for_selector("#offer:not([hidden])")
            self.tab_to(page, "Continue as ada")
            page.keyboard.press("Enter")
            page.wait_for_selector(LIVE)
            self.tab_to(page, "Send a test event")
            page.keyboard.press("Enter")
            page.wait_for_selector("#shot:not([hidden])")
            page.wait_for_selector("#notifications button[data-name=archive]")
            self.tab_to(page, "Archive")
            count = page.locator("#notifications li").count()
            page.keyboard.press("Enter")
            # The focus is not lost together with the row.
            page.wait_for_function("() => document.activeElement !== document.body")
            assert count > 0
            self.tab_to(page, "Develop", back=True)
            page.keyboard.press("Enter")
            page.wait_for_selector("#view-develop:not([hidden])")
            self.tab_to(page, "Pause")
            page.keyboard.press("Tab")
            page.keyboard.press("Tab")
            page.keyboard.press("Enter")
            page.wait_for_selector("#log details[open] pre")
            self.tab_to(page, "Sign out", back=True)
            page.keyboard.press("Enter")
            page.wait_for_selector("#welcome:not([hidden])")
            assert page.evaluate("document.activeElement.id") == "token"

    def tab_to(self, page, text, back=False):
        for _ in range(120):
            page.keyboard.press("Shift+Tab" if back else "Tab")
            focused = page.evaluate("document.activeElement.textContent.trim()")
            if focused.startswith(text):
                assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
                return
        raise AssertionError(f"no Tab leads to “{text}”")

    TESTS = [
        page_without_token_explains_itself_and_offers_development_tokens, test_event_arrives_with_its_latency,
        empty_cards_are_hidden, reload_keeps_the_session_and_updates_times,
        all_tabs_share_one_stream_of_the_served_worker, page_is_usable_by_keyboard,
        page_is_live_again_after_a_restart_of_the_service, page_is_offline_while_the_device_is_offline,
        silent_connection_shows_the_age_of_its_last_data,
        wrong_token_is_refused_and_a_valid_one_accepted, link_replaces_a_session_only_if_the_person_agrees,
        token_is_renewed_without_a_reconnection,
        expired_token_is_reported_and_its_successor_accepted, events_are_filtered_paused_opened_and_explained,
        token_is_decoded_and_subscriptions_are_checked, event_is_published_from_the_page,
        operations_are_shown_to_authorized_callers, replicas_are_shown_individually_and_in_total, demo_fills_the_cards,
        school_demo_shows_stale_queries, every_operation_is_shown_with_its_schema,
        api_reference_is_shown_searched_and_called, page_of_a_service_with_the_bell_alone_has_nothing_else,
    ]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--shots", default=None)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--files", action="store_true")
    options.add_argument("--only", nargs="*", default=[])
    options = options.parse_args()
    if options.shots:
        os.makedirs(options.shots, exist_ok=True)
    tests = [test for test in Tests.TESTS if not options.only or test.__name__ in options.only]
    if unknown := set(options.only) - {test.__name__ for test in tests}:
        sys.exit(f"page: there is no test {', '.join(sorted(unknown))}")
    service = PageService()
    failed = []
    try:
        with sync_playwright() as playwright:
            browser = launch(playwright)
            for test in tests:
                begun = time.monotonic()
                try:
                    test(Tests(browser, service, options))
                    print(f"  ok  {test.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
                except Exception as error:
                    failed.append(test.__name__)
                    print(f"FAIL  {test.__name__}: {type(error).__name__}: {error}", flush=True)
            browser.close()
    finally:
        service.stop()
    if failed:
        sys.exit(f"page: {len(failed)} failed: {', '.join(failed)}")
    print(f"cases: {len(tests)}")


if __name__ == "__main__":
    main()

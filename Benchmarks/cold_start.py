#!/usr/bin/env python3
"""Measures how long a page with bellhop.js/offline needs to show its last state without the service, in Chromium: from
connect(), and from the beginning of the navigation, which adds the browser's own work and the loading of the page's files
from this machine. Both times end when the list is drawn. The goal is a median of at most 100 ms from connect().

    .build-tools/bin/python Benchmarks/cold_start.py [--starts N] [--within-ms N]

BELLHOP_BIN is the path of the service's binary; by default the binary of `swift build`. Needs playwright and Chromium, as
`.ci/test tools` installs them.
"""

import argparse
import pathlib
import statistics
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1] / "Tests"
sys.path[:0] = [str(TESTS), str(TESTS / "browser")]
sys.dont_write_bytecode = True

from coldstart import ColdStart  # noqa: E402
from harness.browsers import launch  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402
from service import Files, Service  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=30)
    parser.add_argument("--within-ms", type=float, default=100, help="the exit code is 1 if the median is higher (100)")
    given = parser.parse_args()
    service, files = Service("--drain-seconds=0"), Files()
    times, of_page = [], []
    try:
        with sync_playwright() as playwright:
            browser = launch(playwright)
            with ColdStart(browser, service, files) as device:
                for _ in range(given.starts):
                    device.start()
                    times.append(device.milliseconds)
                    of_page.append(device.milliseconds_of_page)
            browser.close()
    finally:
        files.stop()
        service.stop()
    print(f"cold start from connect(): {figures(times)}; goal {given.within_ms:.0f} ms")
    print(f"cold start from the navigation: {figures(of_page)}")
    sys.exit(statistics.median(times) > given.within_ms)


def figures(times):
    return f"median {statistics.median(times):.0f} ms of {len(times)} ({min(times):.0f} to {max(times):.0f})"


if __name__ == "__main__":
    main()

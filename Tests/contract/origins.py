"""Compares the origins of BELLHOP_CORS_ORIGINS with those of browsers.

    origins.py --binary BINARY

A service gets origins in many spellings. For each, Node's `new URL(…).origin` is what a browser sends as `Origin`: the
service must answer it with `Access-Control-Allow-Origin`. A spelling that the service refuses at its start must be none of
an origin: it has a path, a query, a fragment or a user, or Node cannot read it.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from harness.services import Service, environment_for, request

SCHEMES = ["https", "HTTPS", "http", "Http"]
HOSTS = ["app.example", "App.Example", "a-b.c1.example", "xn--mnchen-3ya.example", "localhost", "127.0.0.1", "[::1]",
         "[0:0:0:0:0:0:0:1]", "[2001:DB8::A]", "[2001:db8:0:0:1:0:0:1]"]
PORTS = ["", ":80", ":443", ":8080", ":65535"]
ENDS = ["", "/"]
REFUSED = ["https://app.example/path", "https://app.example/?", "https://app.example?x", "https://app.example#x",
           "https://ada@app.example", "https://app.example:65536", "https://app.example:x", "https://", "app.example",
           "https://a\tb.example", "https://app.example//", "https://app.example/./x", "https://[::ffff:192.0.2.1]"]
READ = """
const read = text => { try { const url = new URL(text); return { origin: url.origin, whole: url.href } } catch { return null } }
console.log(JSON.stringify(JSON.parse(process.argv[1]).map(read)))
"""


def read_by_node(texts):
    found = subprocess.run(["node", "-e", READ, json.dumps(texts)], check=True, capture_output=True, text=True)
    return json.loads(found.stdout)


def spellings():
    return [f"{scheme}://{host}{port}{end}" for scheme in SCHEMES for host in HOSTS for port in PORTS for end in ENDS]


def accepted(binary, folder):
    """Returns the spellings whose origin, as Node reads it, the service does not allow."""
    texts = spellings()
    service = Service(binary, folder)
    service.environment["BELLHOP_CORS_ORIGINS"] = ",".join(texts)
    service.start()
    try:
        wrong = []
        for text, read in zip(texts, read_by_node(texts), strict=True):
            headers = {"Origin": read["origin"], "Access-Control-Request-Method": "GET"}
            allowed = request(service.port, "OPTIONS", "/v1/badges", headers=headers)[1].get("access-control-allow-origin")
            if allowed != read["origin"]:
                wrong.append(f"{text}: a browser sends {read['origin']}, and the answer allows {allowed}")
        return wrong
    finally:
        service.stop()


def refused(binary, folder):
    """Returns the refused spellings that the service accepts, or refuses although they are origins."""
    wrong = []
    for text, read in zip(REFUSED, read_by_node(REFUSED), strict=True):
        if read and text in (read["origin"], read["origin"] + "/"):
            wrong.append(f"{text} is an origin")
        environment = environment_for(
            BELLHOP_PORT="0", BELLHOP_DATABASE=f"sqlite:{folder / 'refused.sqlite'}", BELLHOP_JWT_SECRET="x" * 32,
            BELLHOP_CORS_ORIGINS=text)
        start = subprocess.run([binary, "serve"], env=environment, capture_output=True, text=True, timeout=60)
        if start.returncode != 78 or "BELLHOP_CORS_ORIGINS" not in start.stderr:
            wrong.append(f"{text} ends the start with {start.returncode}: {start.stderr[:200]}")
    return wrong


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--binary", required=True)
    binary = options.parse_args().binary
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wrong = accepted(binary, folder) + refused(binary, folder)
    for line in wrong[:20]:
        print(f"FAIL  {line}")
    print(f"origins: {len(spellings()) + len(REFUSED)} spellings, {len(wrong)} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

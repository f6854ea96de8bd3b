#!/usr/bin/env python3
"""Checks the monitoring files (Grafana's dashboard, Prometheus' alerts, the adapter for Kubernetes) against the
service.

    Tests/deploy/watchers.py --binary .build/debug/bellhop

Every metric and label in them exists on the page of a running service that reads PostgreSQL's log, sends webhooks and
uses an issuer's keys. Every expression is valid PromQL. Each alert has a test in which it fires and one in which it
stays silent. The dashboard has the structure of Grafana's own exports. Grafana itself is not available and not used.

Needs PyYAML, promtool and PostgreSQL's server.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "crash"))

import source  # noqa: E402
from harness import postgres  # noqa: E402
from harness.ports import free_port  # noqa: E402
from harness.tokens import token  # noqa: E402
from harness.waiting import Failed, wait_until  # noqa: E402

ALERTS = ROOT / "Deploy/prometheus/alerts.yaml"
ALERTS_TEST = ROOT / "Deploy/prometheus/alerts.test.yaml"
ADAPTER = ROOT / "Deploy/prometheus/adapter.yaml"
KUBERNETES = ROOT / "Deploy/kubernetes.yaml"
DASHBOARD = ROOT / "Deploy/grafana/bellhop.json"
# Panels of Grafana itself, so that no plug-in is needed.
PANELS = {"row", "stat", "timeseries"}
COLUMNS = 24
# Prometheus' own series of every scraped job.
SCRAPED = {"up": {"job", "instance"}}
SCRAPE_LABELS = {"job", "instance"}
# The values that Grafana substitutes before Prometheus evaluates an expression.
VARIABLES = {"$__rate_interval": "5m", "$job": ".*", "$instance": ".*"}
SELECTOR = re.compile(r"\b((?:bellhop|process)_[a-z_]+|up)\b(?:\{([^}]*)\})?")
GROUPING = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")
# A key that signs nothing here (RFC 8037, appendix A): an issuer's set with one key.
KEY_SET = {
    "keys": [
        {"kty": "OKP", "crv": "Ed25519", "kid": "one", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
    ]
}


def require(holds, what):
    """Raises an error if the condition does not hold."""
    if not holds:
        raise Failed(what)


def promtool(*arguments):
    """Runs promtool; raises its errors if it fails."""
    program = shutil.which("promtool")
    require(program, "promtool is not installed (apt-get install prometheus)")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    require(done.returncode == 0, f"promtool {arguments[0]} {arguments[1]}: {done.stderr.strip()} {done.stdout.strip()}")


def alerts():
    """Returns the alerts by name."""
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    return {rule["alert"]: rule for rule in rules}


def check_alerts():
    """Checks that promtool accepts the alerts, that their tests pass, and that each alert has a case of either kind."""
    promtool("check", "rules", ALERTS)
    promtool("test", "rules", ALERTS_TEST)
    cases = [case for test in yaml.safe_load(ALERTS_TEST.read_text())["tests"] for case in test["alert_rule_test"]]
    for name in alerts():
        for fires in (True, False):
            found = any(case["alertname"] == name and bool(case["exp_alerts"]) == fires for case in cases)
            require(found, f"{ALERTS_TEST.name}: no test shows that {name} {'fires' if fires else 'is quiet'}")
    return f"{len(alerts())} alerts, each with a test that it fires and one that it is quiet"


def check_panel(panel):
    """Checks that a panel has a description, a unit and a data source."""
    title = panel.get("title")
    require(title and panel["type"] in PANELS, f"the panel {title!r} is a {panel['type']}, none of {sorted(PANELS)}")
    place = panel["gridPos"]
    require(0 <= place["x"] and place["x"] + place["w"] <= COLUMNS, f"the panel {title!r} does not fit: {place}")
    if panel["type"] == "row":
        return
    require(panel["fieldConfig"]["defaults"].get("unit"), f"the panel {title!r} has no unit")
    require(panel["targets"], f"the panel {title!r} asks nothing")
    for asked in (panel, *panel["targets"]):
        require(asked["datasource"]["uid"] == "${datasource}", f"the panel {title!r} does not ask the chosen datasource")
    names = [target["refId"] for target in panel["targets"]]
    require(len(names) == len(set(names)), f"the panel {title!r} has two queries of one name")
    for target in panel["targets"]:
        for part in ('job=~"$job"', 'instance=~"$instance"'):
            missing = len(SELECTOR.findall(target["expr"])) - target["expr"].count(part)
            require(not missing, f"the panel {title!r} has a selector without {part}: {target['expr']}")


def check_dashboard():
    """Checks that panels do not overlap and are built into Grafana, and that the variables exist."""
    dashboard = json.loads(DASHBOARD.read_text())
    for member in ("title", "uid", "schemaVersion", "panels", "templating", "time"):
        require(dashboard.get(member), f"the dashboard has no {member}")
    require(dashboard.get("id") is None, "the dashboard has an id, which belongs to one Grafana")
    panels = dashboard["panels"]
    ids = [panel["id"] for panel in panels]
    require(len(ids) == len(set(ids)), "two panels have one id")
    taken = set()
    for panel in panels:
        check_panel(panel)
        place = panel["gridPos"]
        cells = {
            (x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])
        }
        require(not cells & taken, f"the panel {panel['title']!r} lies on another one")
        taken |= cells
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)\}?", DASHBOARD.read_text()))
    require(used == variables, f"the dashboard uses {sorted(used)} and has {sorted(variables)}")
    return f"the dashboard has {len(panels)} panels, none on another, with titles and units"


def expressions():
    """Returns all PromQL expressions: pairs of their place, and the expression as Prometheus reads it."""
    for name, rule in alerts().items():
        yield f"alert {name}", rule["expr"]
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']}", target["expr"]
    for variable in dashboard["templating"]["list"]:
        if matched := re.fullmatch(r"label_values\((.*), (\w+)\)", variable.get("definition", "")):
            yield f"variable {variable['name']}", f"sum by ({matched[2]}) ({matched[1]})"
    for rule in yaml.safe_load(ADAPTER.read_text())["rules"]["custom"]:
        yield "the adapter's rule", rule["seriesQuery"]


def plain(expression):
    """Returns an expression with Grafana's variables replaced."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def check_expressions():
    """Checks that Prometheus can parse all expressions."""
    rules = [{"record": f"expression:{number}", "expr": plain(text)} for number, (_, text) in enumerate(expressions())]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}, file)
        file.flush()
        promtool("check", "rules", file.name)
    return f"{len(rules)} expressions are PromQL"


def check_autoscaling():
    """Checks that the metric of the Kubernetes autoscaler is the one that the adapter provides."""
    documents = [one for one in yaml.safe_load_all(KUBERNETES.read_text()) if one]
    (scaler,) = (one for one in documents if one["kind"] == "HorizontalPodAutoscaler")
    named = {one["pods"]["metric"]["name"] for one in scaler["spec"]["metrics"] if one["type"] == "Pods"}
    given = {match[0] for rule in yaml.safe_load(ADAPTER.read_text())["rules"]["custom"]
             for match in SELECTOR.findall(rule["seriesQuery"])}  # fmt: skip
    require(named and named <= given, f"the autoscaler asks for {sorted(named)}, the adapter gives {sorted(given)}")
    return f"the autoscaler asks for {', '.join(sorted(named))}, which the adapter gives"


def series_of(page):
    """Returns the labels of the samples on a page of metrics, by the name of their series."""
    found = {}
    for line in page.splitlines():
        if matched := re.match(r"([a-z_]+)(?:\{(.*)\})? ", line):
            labels = set(re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', matched[2] or ""))
            found.setdefault(matched[1], set()).update(labels)
    return found


def check_page(page):
    """Checks that every metric and label in the files is on the page."""
    found = {name: labels | SCRAPE_LABELS for name, labels in series_of(page).items()} | SCRAPED
    used = set()
    for where, expression in expressions():
        expression = plain(expression)
        here = set()
        for name, selector in SELECTOR.findall(GROUPING.sub("", expression)):
            require(name in found, f"{where}: the service has no metric {name}")
            labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector)) - {"namespace", "pod"}
            require(labels <= found[name], f"{where}: {name} has no {sorted(labels - found[name])}")
            here |= found[name]
            used.add(name)
        for label in (label.strip() for text in GROUPING.findall(expression) for label in text.split(",")):
            require(label in here, f"{where}: no metric in it has the label {label}")
    return f"{len(used)} metrics are named, and the service has them with their labels"


# The public key of a browser, as in RFC 8291, appendix A.
PUBLIC_KEY = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"


def traffic(service):
    """Sends a notification, reads counts, and sends a request that is refused, because the page lists only paths that
    were used."""
    backend, ada = token(service.secret, "backend", "service_role"), token(service.secret, "ada")

    def ask(method, path, bearer, body=None, expect=(200, 201, 202, 204)):
        status, answer = service.request(method, path, bearer, body)
        require(status in expect, f"{method} {path}: {status} {answer[:200]}")

    browser = {"endpoint": f"http://127.0.0.1:{free_port()}/a", "keys": {"p256dh": PUBLIC_KEY, "auth": "BTBZMqHH6r4Tts7J_aSIgg"}}
    ask("PUT", "/v1/devices/d1", ada, {"platform": "webpush", "subscription": browser})
    ask("POST", "/v1/devices/d1/test", ada)
    ask("POST", "/v1/events", backend, {"id": "e1", "type": "auth.password_changed", "userId": "ada", "data": {}})
    ask("GET", "/v1/badges", ada)
    ask("GET", "/v1/badges", None, expect=(401,))
    ask("GET", "/readyz", None)


def wait_for(service, condition, what):
    """Polls the page of metrics until it meets the condition; returns it."""

    def page():
        status, text = service.request("GET", "/metrics", None)
        require(status == 200, f"/metrics answers {status}")
        return text.decode() if condition(text.decode()) else None

    return wait_until(page, lambda: f"{what}:\n{service.log()}")


def page_of_service(binary, folder):
    """Returns the metrics of a service with all features in use."""
    with source.app_of(argparse.Namespace(binary=binary), folder) as (cluster, service):
        keys = folder / "keys.json"
        keys.write_text(json.dumps(KEY_SET))
        service.environment.update(
            BELLHOP_JWKS=str(keys),
            # Nothing listens on this port, so an attempt fails and the page has a reason.
            BELLHOP_WEBHOOK_URL=f"http://127.0.0.1:{free_port()}/",
            BELLHOP_WEBHOOK_SECRETS="whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
            BELLHOP_WEBHOOK_PRIVATE="true",
            BELLHOP_PUSH_PRIVATE="true", BELLHOP_PUSH_HOSTS="127.0.0.1",
            BELLHOP_PUSH_KEYS="AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
            BELLHOP_VAPID_KEY="AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
            BELLHOP_VAPID_CONTACT="mailto:ops@example.com",
            BELLHOP_WEBHOOK_PRIORITIES="URGENT,HIGH,NORMAL,LOW",
            BELLHOP_WEBHOOK_AFTER_SECONDS="1",
        )
        source.start_reading(service, cluster)
        traffic(service)
        cluster.sql("INSERT INTO counters VALUES ('one', 1)", source.DATABASE)
        return wait_for(
            service,
            lambda page: "bellhop_source_rows_total 0" not in page and "bellhop_webhooks_failed_total{" in page
            and "bellhop_push_failed_total{" in page,
            "a row of the app's log, a failed webhook and a failed push message",
        )


def main():
    """Runs all checks and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    options = parser.parse_args()
    try:
        checks = (check_alerts, check_dashboard, check_expressions, check_autoscaling)
        for check in checks:
            print(f"ok      {check()}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            page = page_of_service(options.binary, pathlib.Path(folder))
        print(f"ok      {check_page(page)}")
        print(f"cases: {len(checks) + 1}")
    except (Failed, postgres.Trouble) as wrong:
        sys.exit(f"FAILED  {wrong}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Checks the deployment files against the promises of their comments: memory limits, spreading, network policies,
figures.

Starts nothing. Needs PyYAML, kubernetes-validate (the API's schemas) and systemd-analyze (Debian's package systemd).
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import kubernetes_validate
import yaml

COMPOSE = "Deploy/compose.yaml"
COMPOSE_SOURCE = "Deploy/compose.source.yaml"
KUBERNETES = "Deploy/kubernetes.yaml"
GATEWAY = "Deploy/kubernetes-gateway.yaml"
UNIT = "Deploy/bellhop.service"
WORKFLOWS = ".github/workflows"
OPERATIONS = "Docs/operations.md"

# The oldest version in the header of kubernetes.yaml. Its schemas and the newest ones must both accept the file.
KUBERNETES_OLDEST = "1.30"
# The scale of systemd-analyze: 0 is fully isolated, 10 fully exposed. The network, which a service needs, accounts for
# 1.0.
EXPOSURE_MAX = 1.5
# KiB of a replica for each open stream; Docs/performance.md has the measurement.
STREAM_KIB = "1.4"
# Connections of a replica with the default settings, and PostgreSQL's default of 100 without those for superusers.
REPLICA_CONNECTIONS = 14
POSTGRES_CONNECTIONS = 97
# Memory of nginx for a stream, by the number of streams that share a connection.
NGINX_STREAM_KIB = {"20", "36"}
HEALTH_TEST = ["CMD", "/usr/bin/bellhop", "health"]
SPREAD_PROMISE = "A machine that is lost takes one replica with it, not both"
# Paths for the cluster only; they must not be reachable from outside.
INNER_PATHS = ("/metrics", "/readyz")
LEADERBOARD_MEGABYTES_DEFAULT = 512
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Wrong(Exception):
    """An error, with its file."""


def require(holds, where, what):
    """Raises an error if the condition does not hold."""
    if not holds:
        raise Wrong(f"{where}: {what}")


def read(root, path):
    """Returns the text of a file."""
    require((root / path).is_file(), path, "is missing")
    return (root / path).read_text(encoding="utf-8")


def objects(root, path):
    """Returns the objects of a manifest, and the optional objects in its comments."""
    text = read(root, path)
    commented = "\n".join(
        "\n".join(line.removeprefix("#").removeprefix(" ") for line in part.splitlines())
        for part in re.findall(r"(?m)^# ---\n(?:#.*\n)+", text)
    )
    try:
        return [one for one in yaml.safe_load_all(text) if one], [one for one in yaml.safe_load_all(commented) if one]
    except yaml.YAMLError as error:
        raise Wrong(f"{path}: is no YAML: {error}") from error


def of_kind(root, path, kind):
    """Returns the objects of one kind in a manifest, at least one."""
    found = [one for one in objects(root, path)[0] if one["kind"] == kind]
    require(found, path, f"has no {kind}")
    return found


def compose_services(root):
    """Returns the services of both compose files by name, with shared parts merged."""
    services = yaml.safe_load(read(root, COMPOSE))["services"]
    for name, more in yaml.safe_load(read(root, COMPOSE_SOURCE))["services"].items():
        one = services.get(name, {})
        environment = {**one.get("environment", {}), **more.get("environment", {})}
        services[name] = {**one, **more, "environment": environment}
    return services


def bytes_of(size):
    """Converts a size in the notation of compose and Kubernetes to bytes."""
    number, unit = re.fullmatch(r"(\d+)\s*([kmg]?)i?b?", str(size).lower()).groups()
    return int(number) * UNITS[unit]


def check_compose_memory(root):
    """Checks that every service of compose.yaml has a memory limit, and a limit for its in-memory files."""
    bounds = []
    for name, service in compose_services(root).items():
        require("mem_limit" in service, COMPOSE, f"{name} has no mem_limit")
        bounds.append(f"{name} {service['mem_limit']}")
        for mount in service.get("tmpfs", []):
            require("size=" in mount, COMPOSE, f"{name}: tmpfs {mount} has no size")
    return "bounds of memory: " + ", ".join(bounds)


def check_compose_health(root):
    """Checks that a replica's healthcheck uses its own settings, so that no port is written twice."""
    asked = []
    for name, service in compose_services(root).items():
        if "serve" not in service.get("command", []):
            continue
        test = service.get("healthcheck", {}).get("test")
        require(test == HEALTH_TEST, COMPOSE, f"{name}: the healthcheck is {test} and not {HEALTH_TEST}")
        asked.append(name)
    require(asked, COMPOSE, "has no replicas")
    return "healthchecks without a port: " + ", ".join(asked)


def check_leaderboards(root):
    """Checks that leaderboards get at most half of a replica's memory where that is limited."""
    limits = {}
    for name, service in compose_services(root).items():
        if "serve" in service.get("command", []):
            require("mem_limit" in service, COMPOSE, f"{name} has no mem_limit")
            limits[f"{COMPOSE} {name}"] = (service["environment"], service["mem_limit"])
    for deployment in of_kind(root, KUBERNETES, "Deployment"):
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        settings = {one["name"]: one.get("value") for one in container["env"]}
        limits[f"{KUBERNETES} {container['name']}"] = (settings, container["resources"]["limits"]["memory"])
    for where, (settings, limit) in limits.items():
        megabytes = int(settings.get("BELLHOP_LEADERBOARD_MEGABYTES", LEADERBOARD_MEGABYTES_DEFAULT))
        require(
            (megabytes << 20) * 2 <= bytes_of(limit),
            where,
            f"leaderboards may take {megabytes} MB of {limit}: set BELLHOP_LEADERBOARD_MEGABYTES or raise the limit",
        )
    return "leaderboards within a replica's memory: " + ", ".join(limits)


def check_schemas(root):
    """Checks that the oldest and the newest known Kubernetes accept the manifests, without unknown members."""
    newest = kubernetes_validate.latest_version()
    judged, parsed = [], []
    for path in (KUBERNETES, GATEWAY):
        live, commented = objects(root, path)
        for one in live + commented:
            name = f"{one['kind']} {one['metadata']['name']}"
            if one["apiVersion"].startswith("gateway.networking.k8s.io/"):
                parsed.append(name)
                continue
            for version in (KUBERNETES_OLDEST, newest):
                try:
                    kubernetes_validate.validate(one, version, strict=True)
                except kubernetes_validate.ValidationError as error:
                    member = ".".join(str(step) for step in error.path)
                    raise Wrong(f"{path}: {name}, {member}: {error.message} (Kubernetes {version})") from error
                except kubernetes_validate.SchemaNotFoundError as error:
                    raise Wrong(f"{path}: {name}: {error.message}") from error
            judged.append(name)
    return (
        f"valid for Kubernetes {KUBERNETES_OLDEST} and {newest}: {', '.join(judged)}; "
        f"parsed only, since the schemas of Gateway API are not at hand: {', '.join(parsed)}"
    )


def pod_labels(root):
    """Returns the labels of the replicas' pods."""
    return of_kind(root, KUBERNETES, "Deployment")[0]["spec"]["template"]["metadata"]["labels"]


def selects(selector, labels):
    """Returns whether a selector that consists only of labels selects a pod."""
    return set(selector) <= {"matchLabels"} and selector.get("matchLabels", {}).items() <= labels.items()


def check_spreading(root):
    """Checks that no two replicas of a generation run on one machine, as the comment promises."""
    require(SPREAD_PROMISE in prose(read(root, KUBERNETES)), KUBERNETES, f"the promise is gone: {SPREAD_PROMISE}")
    pod = of_kind(root, KUBERNETES, "Deployment")[0]["spec"]["template"]["spec"]
    constraints = [
        one for one in pod.get("topologySpreadConstraints", []) if one["topologyKey"] == "kubernetes.io/hostname"
    ]
    require(len(constraints) == 1, KUBERNETES, "not one constraint by kubernetes.io/hostname")
    (constraint,) = constraints
    for member, value in {
        "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2, "nodeTaintsPolicy": "Honor",
        "matchLabelKeys": ["pod-template-hash"],
    }.items():  # fmt: skip
        require(
            constraint.get(member) == value,
            KUBERNETES,
            f"{member} is {constraint.get(member)} and not {value}, so the promise does not hold: {SPREAD_PROMISE}",
        )
    require(selects(constraint["labelSelector"], pod_labels(root)), KUBERNETES, "the constraint counts other pods")
    return f"spreading: {SPREAD_PROMISE.lower()}"


def check_autoscaling(root):
    """Checks that only the autoscaler sets the number of replicas, and that PostgreSQL has connections for its maximum."""
    (scaler,) = of_kind(root, KUBERNETES, "HorizontalPodAutoscaler")
    (deployment,) = of_kind(root, KUBERNETES, "Deployment")
    target = scaler["spec"]["scaleTargetRef"]
    require(
        (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"]),
        KUBERNETES,
        f"the autoscaler is for {target}, which is not the replicas",
    )
    require("replicas" not in deployment["spec"], KUBERNETES, "the replicas' number is set beside the autoscaler's")
    least, most = scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]
    require(least >= 2, KUBERNETES, f"the autoscaler leaves {least} replica, of which none can fail")
    at_once = most + deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
    connections = at_once * REPLICA_CONNECTIONS
    require(
        connections <= POSTGRES_CONNECTIONS,
        KUBERNETES,
        f"{at_once} replicas take {connections} connections of PostgreSQL's {POSTGRES_CONNECTIONS}",
    )
    return f"autoscaling: {least} to {most} replicas, {connections} of PostgreSQL's {POSTGRES_CONNECTIONS} connections"


def check_disruptions(root):
    """Checks that unready replicas do not keep a machine from being drained."""
    for budget in of_kind(root, KUBERNETES, "PodDisruptionBudget"):
        policy = budget["spec"].get("unhealthyPodEvictionPolicy")
        require(policy == "AlwaysAllow", KUBERNETES, f"unhealthyPodEvictionPolicy is {policy} and not AlwaysAllow")
        require(selects(budget["spec"]["selector"], pod_labels(root)), KUBERNETES, "the budget counts other pods")
    return "disruptions: machines can be drained of replicas that are not ready"


def check_peer(peer):
    """Checks that an admitted peer is named, by labels or by an address that is not every address."""
    if "ipBlock" in peer:
        require(not peer["ipBlock"]["cidr"].endswith("/0"), KUBERNETES, "the network policy admits every address")
        return
    named = [one for one in peer.values() if one.get("matchLabels") or one.get("matchExpressions")]
    require(named, KUBERNETES, f"the network policy admits everybody: {peer}")


def check_network(root):
    """Checks that only named peers reach the replicas, each on one port, and that replicas reach DNS, PostgreSQL and
    HTTPS. The port of the metrics is that of the setting and of the annotation for Prometheus."""
    policies = [
        one["spec"]
        for one in of_kind(root, KUBERNETES, "NetworkPolicy")
        if selects(one["spec"]["podSelector"], pod_labels(root))
    ]
    for direction in ("Ingress", "Egress"):
        bound = any(direction in one.get("policyTypes", []) for one in policies)
        require(bound, KUBERNETES, f"no network policy of the replicas bounds {direction}")
    container = of_kind(root, KUBERNETES, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]
    ours = {one[key] for one in container["ports"] for key in ("name", "containerPort")}
    (listen,) = [one["value"] for one in container["env"] if one["name"] == "BELLHOP_METRICS_LISTEN"]
    (metrics,) = [one["containerPort"] for one in container["ports"] if one["name"] == "metrics"]
    asked = of_kind(root, KUBERNETES, "Deployment")[0]["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"]
    require(
        listen.rpartition(":")[2] == asked == str(metrics), KUBERNETES,
        f"the metrics are at {listen}, the container opens {metrics}, and Prometheus asks {asked}",
    )
    admitted = 0
    for rule in (rule for one in policies for rule in one.get("ingress", [])):
        require(rule.get("from"), KUBERNETES, "the network policy admits everybody: a rule without from")
        for peer in rule["from"]:
            check_peer(peer)
            admitted += 1
        ports = {one["port"] for one in rule.get("ports", [])}
        require(
            len(ports) == 1 and ports <= ours, KUBERNETES, f"a rule opens {ports or 'all ports'}, not one of {ours}"
        )
    require(admitted, KUBERNETES, "the network policy admits nobody")
    reached = {port["port"] for one in policies for rule in one.get("egress", []) for port in rule.get("ports", [])}
    require({53, 5432, 443} <= reached, KUBERNETES, f"replicas reach {reached}, not 53, 5432 and 443")
    return f"network policies: {admitted} named peers come in, ports {sorted(reached)} go out"


def reaches(kind, path, asked):
    """Returns whether a route with this path matches a request for the other path."""
    require(kind in ("Exact", "Prefix", "PathPrefix"), "routes", f"{path} is of type {kind}, which nobody can judge")
    return asked == path or (kind != "Exact" and asked.startswith(path.rstrip("/") + "/"))


def ingress_paths(root):
    """Returns the routes of the ingress, as pairs of kind and path."""
    paths = set()
    for ingress in of_kind(root, KUBERNETES, "Ingress"):
        require("defaultBackend" not in ingress["spec"], KUBERNETES, "the ingress routes everything by default")
        for rule in ingress["spec"]["rules"]:
            paths |= {(one["pathType"], one["path"]) for one in rule["http"]["paths"]}
    return paths


def gateway_paths(root):
    """Returns the routes of Gateway API, as pairs of kind and path in the terms of the ingress."""
    paths = set()
    for route in of_kind(root, GATEWAY, "HTTPRoute"):
        for rule in route["spec"]["rules"]:
            for match in rule.get("matches") or [{}]:
                path = match.get("path", {"type": "PathPrefix", "value": "/"})
                paths.add(({"PathPrefix": "Prefix"}.get(path["type"], path["type"]), path["value"]))
    return paths


def check_routes(root):
    """Checks that both entry points route the same paths: all that the service answers, except those for the cluster."""
    ways = {KUBERNETES: ingress_paths(root), GATEWAY: gateway_paths(root)}
    for where, paths in ways.items():
        for inner in INNER_PATHS:
            for kind, path in paths:
                require(not reaches(kind, path, inner), where, f"{kind} {path} routes {inner}")
        for path in yaml.safe_load((root / "openapi.yaml").read_text())["paths"]:
            is_routed = any(reaches(kind, routed, path) for kind, routed in paths)
            require(is_routed or path in INNER_PATHS, where, f"nothing routes {path}")
    more = ways[GATEWAY] - {("Exact", "/v1/stream")}
    require(more == ways[KUBERNETES], GATEWAY, f"not the ingress's paths: {sorted(more ^ ways[KUBERNETES])}")
    return f"routes: {', '.join(path for _, path in sorted(more))}; none to {' or '.join(INNER_PATHS)}"


def check_stream_timeouts(root):
    """Checks that a gateway does not end streams."""
    for route in of_kind(root, GATEWAY, "HTTPRoute"):
        for rule in route["spec"]["rules"]:
            paths = [match.get("path", {}).get("value") for match in rule.get("matches", [])]
            if "/v1/stream" in paths:
                timeouts = rule.get("timeouts", {})
                require(timeouts.get("request") == "0s", GATEWAY, f"streams end by the timeouts {timeouts}")
                return "streams through a gateway: no timeout"
    raise Wrong(f"{GATEWAY}: has no rule for /v1/stream")


def prose(text):
    """Returns a text as one line, without the characters of comments and tables."""
    return re.sub(r"[\s#|*]+", " ", text)


def check_stream_memory(root):
    """Checks that all files state the same memory of a stream."""
    must = {OPERATIONS, COMPOSE, KUBERNETES}
    deploy = [str(one.relative_to(root)) for one in sorted((root / "Deploy").rglob("*"))
              if one.is_file() and one.parent.name != "__pycache__"]
    pattern = re.compile(r"(\d+(?:\.\d+)?) KiB,? (?:for )?(?:each|every|per|an?)(?: open| idle)? streams?\b")
    for path in ["README.md", OPERATIONS, *deploy]:
        figures = set(pattern.findall(prose(read(root, path)))) - NGINX_STREAM_KIB
        require(figures <= {STREAM_KIB}, path, f"a stream takes {', '.join(figures)} KiB and not {STREAM_KIB}")
        require(figures or path not in must, path, f"does not say that a stream takes {STREAM_KIB} KiB")
    return f"memory of a stream: {STREAM_KIB} KiB in README.md, {OPERATIONS} and {len(deploy)} files of Deploy"


def check_unit(root):
    """Checks the isolation of the unit with systemd-analyze."""
    read(root, UNIT)
    program = shutil.which("systemd-analyze")
    require(program, UNIT, "systemd-analyze is missing, so nobody judges it; install the package systemd")
    done = subprocess.run(
        [program, "security", "--no-pager", "--offline=true", str(root / UNIT)], capture_output=True, text=True
    )
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    require(found, UNIT, f"systemd-analyze does not judge it: {done.stderr.strip()}")
    exposure = float(found[1])
    open_doors = "; ".join(re.findall(r"(?m)^✗ (\S+)", done.stdout))
    require(exposure <= EXPOSURE_MAX, UNIT, f"exposure is {exposure}, more than {EXPOSURE_MAX}: {open_doors}")
    return f"systemd-analyze security: {exposure}, at most {EXPOSURE_MAX}"


def check_workflows(root):
    """Checks that the targets, scripts, jobs and files in the workflows exist, and that only the forge's own actions
    are used."""
    targets = set(re.findall(r"(?m)^([a-z-]+):", read(root, "Makefile")))
    ran = set()
    for path in sorted(str(one.relative_to(root)) for one in (root / WORKFLOWS).glob("*")):
        workflow = yaml.safe_load(read(root, path))
        # YAML 1.1 reads the key `on` as true.
        require(workflow.get(True), path, "is started by nothing")
        for name, job in workflow["jobs"].items():
            needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
            require(set(needs) <= set(workflow["jobs"]), path, f"{name} needs {needs}")
            steps = job.get("steps", [job])
            require(steps is not job.get("steps") or "timeout-minutes" in job, path, f"{name} may run for six hours")
            for used in (step["uses"] for step in steps if "uses" in step):
                # A tag can be moved to other code, a commit cannot.
                pinned = re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", used)
                known = (root / used).is_file() if used.startswith("./") else pinned
                require(known, path, f"{name} uses {used}")
            text = "\n".join(step.get("run", "") for step in steps)
            for target in re.findall(r"(?m)(?:^|[=\w] )make ([a-z-]+)", text):
                require(target in targets, path, f"there is no make {target}")
                ran.add(f"make {target}")
            for script in re.findall(r"\.ci/[a-z-]+", text):
                require(os.access(root / script, os.X_OK), path, f"there is no {script}")
                ran.add(script)
    require(ran, WORKFLOWS, "runs nothing")
    return f"workflows: {', '.join(sorted(ran))}; never run here, where there is no forge"


CHECKS = (
    check_compose_memory, check_compose_health, check_leaderboards, check_schemas, check_spreading, check_autoscaling,
    check_disruptions, check_network, check_routes, check_stream_timeouts, check_stream_memory, check_unit,
    check_workflows,
)  # fmt: skip


def main():
    """Runs all checks, prints a line for each, and exits with 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    root = parser.parse_args().root.resolve()
    failed = 0
    for check in CHECKS:
        try:
            print(f"ok      {check(root)}")
        except Wrong as wrong:
            failed += 1
            print(f"FAILED  {wrong}")
        except (AttributeError, KeyError, TypeError, yaml.YAMLError) as error:
            failed += 1
            print(f"FAILED  {check.__name__}: a file is not shaped as expected: {error!r}")
    if failed:
        sys.exit(1)
    print(f"cases: {len(CHECKS)}")


if __name__ == "__main__":
    main()

"""The machine: cores, versions, Debian packages, builds. Nothing is measured here."""

import os
import pathlib
import resource
import shutil
import subprocess
import sys

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent
CHECKOUT = BENCHMARKS.parent
WORK = BENCHMARKS / ".work"

# package -> a file that shows that it is installed; only rows with a peer need some of them
PACKAGES = {
    "gcc": "/usr/bin/gcc",
    "libc6-dev": "/usr/include/stdio.h",
    "libcurl4-openssl-dev": "/usr/bin/curl-config",
    "libmicrohttpd-dev": "/usr/include/microhttpd.h",
    "libsqlite3-dev": "/usr/include/sqlite3.h",
    "pkg-config": "/usr/bin/pkg-config",
    "util-linux": "/usr/bin/taskset",
}
PEER_PACKAGES = {
    "nchan": {"nginx": "/usr/sbin/nginx", "libnginx-mod-nchan": "/usr/lib/nginx/modules/ngx_nchan_module.so"},
    "postgresql": {"postgresql": "/usr/bin/pg_createcluster"},
    "redis": {"redis-server": "/usr/bin/redis-server"},
    "valgrind": {"binutils": "/usr/bin/strip", "valgrind": "/usr/bin/valgrind"},
}


class Unavailable(Exception):
    """Something that a row needs is missing. The row reports it and the run continues.

    The reason appears in a published table: it is short and contains no paths of this machine."""

    def __init__(self, reason):
        text = " ".join(str(reason).split()).replace(str(CHECKOUT), ".")
        super().__init__(text if len(text) <= 300 else text[:120] + " … " + text[-170:])


def say(text):
    print(text, file=sys.stderr, flush=True)


def install_packages(needs):
    """Installs missing packages with one apt call. A failure is printed, and again by the rows that need the package."""
    wanted = dict(PACKAGES)
    for need in needs:
        wanted.update(PEER_PACKAGES.get(need, {}))
    missing = [name for name, path in wanted.items() if not os.path.exists(path)]
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        say(f"bench: missing Debian packages (needs root to install): {' '.join(missing)}")
        return
    say(f"bench: installing Debian packages: {' '.join(missing)}")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    apt = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=600"]
    # Debian starts nginx at its installation; that server is not wanted here.
    policy = pathlib.Path("/usr/sbin/policy-rc.d")
    created = not policy.exists()
    if created:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    try:
        for command in (apt + ["update"], apt + ["install", "--no-install-recommends"] + missing):
            if subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode != 0:
                say(f"bench: {' '.join(command)} failed")
                return
    finally:
        if created:
            policy.unlink()


def raise_descriptor_limit(wanted=45_000):
    """Raises the limit of descriptors for 20,000 streams; children inherit it. Returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limits in ((wanted, max(wanted, hard)), (hard, hard)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            break
        except (ValueError, OSError):
            continue
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class Cores:
    """The cores of servers and load clients. One core is for the server unless a row needs two; the others generate the
    load."""

    def __init__(self):
        available = sorted(os.sched_getaffinity(0))
        self.count = len(available)
        self.server = str(available[0])
        self.two_servers = f"{available[0]},{available[1]}" if self.count >= 4 else None
        load = available[2:4] if self.count >= 4 else available[1:2] or available[:1]
        self.load = [str(core) for core in load]
        self.separate = self.count >= 2

    def all_load(self):
        return ",".join(self.load)

    def words(self, pinning):
        """Returns the number of cores of a row's server and load client, as text."""
        if not self.separate:
            return "1, shared"
        return {"one": f"1 + {len(self.load)}", "two": f"{2 if self.two_servers else 1} + {len(self.load)}",
                "postgresql": f"{min(self.count, 4) - 1}, with PostgreSQL, + 1", "all": f"{min(self.count, 4)} for all"}[pinning]


def _first_line(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        return (done.stdout + done.stderr).strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return None


def _package_version(name):
    line = _first_line(["dpkg-query", "-W", "-f", "${Version}", name])
    return line if line and "no packages" not in line else "not installed"


def _postgresql_version():
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    line = _first_line([str(programs[-1]), "--version"]) if programs else None
    return line.split()[2] if line else "not installed"


def description(cores):
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    release = "Linux"
    if os.path.exists("/etc/os-release"):
        for line in pathlib.Path("/etc/os-release").read_text().splitlines():
            if line.startswith("PRETTY_NAME="):
                release = line.split("=", 1)[1].strip('"')
    swift = next((word for word in [_first_line(["swift", "--version"])] if word), "Swift not found")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "machine": f"{model}, {cores.count} cores, {memory:.0f} GiB, {release}, kernel {os.uname().release}",
        "versions": ", ".join([
            swift,
            f"libmicrohttpd {_package_version('libmicrohttpd-dev')}",
            f"SQLite {_package_version('libsqlite3-dev')}",
            f"nginx {_package_version('nginx')} with nchan {_package_version('libnginx-mod-nchan')}",
            f"PostgreSQL {_postgresql_version()}",
            "Hummingbird 2.28.1",
        ]),
        "pinning": f"servers on core {cores.server}"
        + (f" (two-core rows: {cores.two_servers})" if cores.two_servers else "")
        + f", load clients on core {cores.all_load()}"
        + ("" if cores.separate else " (THE SAME CORE: ratios only roughly right)"),
    }


def _run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "error:" in line] or done.stdout.splitlines()[-3:]
        raise Unavailable(f"{' '.join(str(part) for part in command[:4])} … failed: {' '.join(errors[:3])}")
    return done.stdout


def build_c():
    """Builds the load clients and the yardsticks. This takes a second, so it is always done."""
    WORK.mkdir(exist_ok=True)
    flags = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-pthread"]
    for source, libraries in (
        ("Clients/sse_load.c", []),
        ("Clients/http_load.c", []),
        ("Yardsticks/send_loop.c", []),
        ("Yardsticks/static_server.c", ["-lmicrohttpd"]),
        ("Yardsticks/batch_commit.c", ["-lsqlite3"]),
        ("Yardsticks/flushed_commit.c", ["-lsqlite3"]),
        ("Yardsticks/notification_server.c", ["-lmicrohttpd", "-lsqlite3"]),
        ("Yardsticks/allocations.c", ["-shared", "-fPIC"]),
    ):
        path = BENCHMARKS / source
        name = path.stem + (".so" if "-shared" in libraries else "")
        _run(flags + [str(path), "-o", str(WORK / name)] + libraries)


def build_swift(package, product, scratch, seconds):
    """Makes a release build of a package's product; returns the executable."""
    if not shutil.which("swift"):
        raise Unavailable("swift is not installed")
    say(f"bench: building {product} in release (minutes the first time, seconds afterwards)")
    command = ["swift", "build", "-c", "release", "--product", product, "--package-path", str(package),
               "--scratch-path", str(scratch)]
    # The service and its peers contain the Swift libraries, as in images.
    command += ["--static-swift-stdlib", "-Xlinker", "-lcurl"]
    try:
        _run(command, timeout=seconds)
        where = subprocess.run(command + ["--show-bin-path"], capture_output=True, text=True, timeout=120).stdout.strip()
    except subprocess.TimeoutExpired:
        raise Unavailable(f"building {product} took longer than {seconds} s") from None
    return pathlib.Path(where.splitlines()[-1]) / product


def bellhop_executable(given=None):
    """Returns the given binary, or a release build of this checkout in the form of packages."""
    if given:
        path = pathlib.Path(given).resolve()
        if not os.access(path, os.X_OK):
            raise Unavailable(f"{given} is no executable")
        return path
    say("bench: building bellhop in release (minutes the first time, seconds afterwards)")
    try:
        built = subprocess.run([CHECKOUT / ".ci/release", "static"], stdout=subprocess.PIPE, text=True, timeout=1_800, check=True)
    except subprocess.SubprocessError as problem:
        raise Unavailable(f"bellhop cannot be built: {problem}") from None
    return CHECKOUT / built.stdout.splitlines()[-1]

"""Rows on table changes: filtered ids, ingest and routing, a morning in a school, a day of likes, memory, latency."""

import json
import statistics
import subprocess
import time

from .machine import WORK, Unavailable, say
from .processes import Load, load, request
from .report import Row
from .servers import SECRET, Bellhop, Nchan, remove_database, token, token_file

TABLES = __file__.replace("changes.py", "tables.yaml")
IDS = 100  # what one screen shows
CHANGES = {"publish_path": "/v1/changes", "publish_method": "POST"}


def item_id(number):
    """As long as a UUID, and with a number in it that a load client can fill in."""
    return f"{number}-0000-4000-8000-c0ffee000000"


def change(table, record, old=None, kind="UPDATE"):
    """A change as a database's webhook sends it."""
    return json.dumps({"type": kind, "schema": "public", "table": table, "record": record, "old_record": old},
                      separators=(",", ":"))


def item(number, value="{n}", table="items"):
    """An update of one row. `value` is what tells one change from another; a load client fills it in."""
    def row(n):
        return {"id": item_id(number), "n": n, "title": "A row of ordinary length, as lists show them", "board": 7}
    return change(table, row(0), row(-1)).replace('"n":0', f'"n":{value}', 1)


def subscription(table, ids=None, event="UPDATE"):
    wish = {"table": table, "event": event}
    if ids is not None:
        wish["filter"] = f"id=in.({','.join(ids)})"
    return wish


def subscription_file(name, wishes):
    """What each stream asks for, one line each."""
    path = WORK / f"subscriptions-{name}.txt"
    with open(path, "w") as file:
        for tables in wishes:
            file.write(json.dumps({"tables": tables}) + "\n")
    return path


class ChangeRows:
    def __init__(self, bench):
        self.bench, self.report, self.cores = bench, bench.report, bench.cores
        self.quick, self.seconds = bench.quick, bench.seconds
        self.many = 2_000 if bench.quick else 10_000

    def server(self, shards=1, settings=None, **options):
        return Bellhop(self.bench.executable("bellhop"), shards=shards, database=WORK / "changes.sqlite",
                       settings={"BELLHOP_TABLES": TABLES, **(settings or {})}, **options)

    def streams(self, count, event, **options):
        return {"streams": count, "path": "/v1/stream", "tokens": token_file(count), "ready_event": "stream:ready",
                "event": event, "open_timeout": 90, **options}

    # -- one change among many filtered ids --------------------------------------------------------------------

    def one_change(self):
        """Every stream has 100 ids of its own, every change is of one id, asked for by one stream."""
        sizes = [10, self.many, 10] + ([] if self.quick else [100, 1_000])
        results = {}
        for streams in sizes:
            results.setdefault(streams, []).append(self.one_change_among(streams))
        table = []
        for streams in sorted(results):
            cost, answered, sent, p99 = (statistics.median(values) for values in zip(*results[streams]))
            table.append([f"{streams:,}", f"{streams * IDS:,}", f"{cost:.0f}", f"{answered:.2f}", f"{sent:.2f}", f"{p99:.2f}"])
        few, many = (statistics.median(value[0] for value in results[n]) for n in (10, self.many))
        self.report.add(Row.against(
            f"CPU per change of one filtered id, {self.many * IDS:,} ids on {self.many:,} streams / {10 * IDS:,} on 10, "
            "its transaction included", 1.2, many, few, unit="µs", at_most=True))
        self.report.add_curve("One change of one filtered id, 100 ids on each stream, 1 server core", [
            "streams", "filtered ids", "CPU per change, µs", "202 → client, p50, ms", "request → client, p50, ms",
            "request → client, p99, ms"], table)

    def one_change_among(self, streams):
        server = self.server()
        ids = streams * IDS
        wishes = ([subscription("items", [item_id(i) for i in range(stream, ids, streams)])] for stream in range(streams))
        with server.start(self.cores.server) as process:
            result = load("sse_load", self.cores.all_load(), port=process.port, mode="closed", threads=1, window=1, expect=1,
                          subscriptions=subscription_file("ids", wishes), seconds=self.seconds, warmup=0.5,
                          server_pid=process.pid, users=ids, marker='"n":', publish_header=server.publisher,
                          publish_body=item("{u}"), **CHANGES, **self.streams(streams, "table:change"))
        if result["lost"] > 1 or result["published"] < 50:
            raise Unavailable(f"{result['lost']} changes were not heard, {result['published']} were made: {result['statuses']}")
        return (result["serverUsPerPublish"], result["sinceAnswerUs"]["p50"] / 1000, result["latencyUs"]["p50"] / 1000,
                result["latencyUs"]["p99"] / 1000)

    # -- ingest and routing ------------------------------------------------------------------------------------

    # What one run posts: places in a batch, deliveries, connections.
    FORMS = {
        "batches of 1,000": ("a", 1_000, 50, 4),
        "batches of 100": ("b", 100, 500, 8),
        "single webhooks, 64 connections": ("c", 1, 20_000, 64),
    }
    BOARDS = 100

    def wishes(self, streams):
        """100 ids on each stream. 1 % of the streams watch rows that change, each row one of them; and every change of a
        note is heard by 1 %."""
        watchers = streams // 100
        changing = watchers * IDS
        ids = [[item_id(name.replace("{u}", str(user))) for user in range(changing // places) for name in names(mark, places)]
               for mark, places, _, _ in self.FORMS.values()]
        for stream in range(streams):
            note = {"id": "note", "table": "notes", "filter": f"board=eq.{stream % self.BOARDS}"}
            if stream % 100 == 0:
                yield [note] + [dict(subscription("items", of_form[stream // 100::watchers]), id=str(number))
                                for number, of_form in enumerate(ids)]
            else:
                yield [note, subscription("items", [item_id(f"quiet-{stream}-{place}") for place in range(IDS)])]

    def ingest(self):
        """10,000 streams with 100 ids each. 100 of them (1 %) watch rows that change, each row one of them; and every
        change of a note is heard by 1 % of the streams."""
        changing = self.many // 100 * IDS
        server = self.server(shards=2)
        table, rates = [], {}
        with server.start(self.cores.two_servers or self.cores.server) as process:
            watching = Load("sse_load", self.cores.load[0], port=process.port, mode="hold", threads=1,
                            subscriptions=subscription_file("ingest", self.wishes(self.many)), **self.streams(self.many, "table:change"))
            watching.ready()
            told = 0
            for name, (mark, places, deliveries, connections) in self.FORMS.items():
                bodies = [item(one) for one in names(mark, places)]
                run = self.deliver(process, server, bodies, 1, changing // places, deliveries // (5 if self.quick else 1),
                                   connections)
                rates[name] = run["rate"]
                told += run["told"]
                table.append(self.cells(name, "1", run))
            bodies = [item("{u}", table="notes").replace('"board":7', f'"board":{place}') for place in range(100)]
            run = self.deliver(process, server, bodies, self.many // self.BOARDS, 1, 20 if self.quick else 200, 2)
            rates["notes"] = run["rate"]
            told += run["told"]
            table.append(self.cells("batches of 100", f"{self.many // self.BOARDS:,}", run))
            mark, places, _, _ = self.FORMS["batches of 1,000"]
            paced = self.post_paced(process, server, [item(one) for one in names(mark, places)], changing // places)
            time.sleep(1)
            heard = watching.result()
        told += paced["requests"] * 1_000
        if heard["delivered"] < told:
            say(f"bench:   of {told:,} rows {heard['delivered']:,} were heard; the server closed {heard['closedByServer']} streams")
        self.report_ingest(rates, paced, table)

    def report_ingest(self, rates, paced, table):
        yardsticks = self.raw_commits()
        published = self.nchan_publishes()
        single = "single webhooks, 64 connections"
        for name in self.FORMS:
            self.report.add(Row(
                f"Table changes taken in, on disk, and told, {self.many:,} streams of which 1 % watch them: {name}", "≥ 10,000 /s",
                f"{rates[name]:,.0f} changes/s", f"SQLite alone, a transaction each: {yardsticks[name]:,.0f} changes/s",
                f"{rates[name] / yardsticks[name]:.2f}", "yes" if rates[name] >= 10_000 else "NO"))
        if published:
            self.report.add(Row(
                f"Table changes, {single} / nchan in memory, a channel for each id, {self.many:,} streams", "",
                f"{rates[single]:,.0f} changes/s", f"{published:,.0f} messages/s", f"{rates[single] / published:.2f}"))
        for part in ("p50", "p99"):
            self.report.add(Row.at_most(f"202 of a batch of 1,000 changes, 10 batches a second, {part}", 100,
                                        paced["latencyUs"][part] / 1000, unit="ms"))
        self.report.add_curve(f"Table changes with {self.many:,} streams, 2 server cores", [
            "posted as", "streams that hear one", "changes per second, told", "changes per second, acknowledged",
            "rows told per second", "202, p50, ms", "202, p99, ms", "CPU per change, µs"], table)

    @staticmethod
    def cells(name, hearing, run):
        return [name, hearing, f"{run['rate']:,.0f}", f"{run['acknowledged']:,.0f}", f"{run['toldRate']:,.0f}",
                f"{run['latencyUs']['p50'] / 1000:.1f}", f"{run['latencyUs']['p99'] / 1000:.1f}",
                f"{run['serverUsPerRequest'] / run['places']:.1f}"]

    def deliver(self, process, server, bodies, hearing, users, deliveries, connections, teller=None):
        """Posts so many deliveries as fast as they are answered, and waits until the last row has gone to its streams, which
        may be another replica's."""
        teller = teller or process
        before = told_rows(teller)
        begin = time.monotonic()
        result = self.post_load(process, server, bodies, users, connections, count=deliveries, seconds=120)
        wanted = deliveries * len(bodies) * hearing
        while (told := told_rows(teller) - before) < wanted:
            if time.monotonic() > begin + 120:
                raise Unavailable(f"{told:,} of {wanted:,} rows were told within 120 s")
            time.sleep(0.01)
        took = time.monotonic() - begin
        changes = deliveries * len(bodies)
        return dict(result, told=told, places=len(bodies), rate=changes / took, toldRate=told / took,
                    acknowledged=changes / result["seconds"])

    def post_paced(self, process, server, bodies, users):
        return self.post_load(process, server, bodies, users, 4, rate=10, seconds=3 if self.quick else 10, warmup=0.3)

    def post_load(self, process, server, bodies, users, connections, **pace):
        path = WORK / "delivery.json"
        path.write_text(bodies[0] if len(bodies) == 1 else "[" + ",".join(bodies) + "]")
        result = load("http_load", self.cores.load[-1], port=process.port, connections=connections, threads=1, method="POST",
                      path="/v1/changes", header=server.publisher, body_file=path, users=users, server_pid=process.pid, **pace)
        if not result["good"] or result["good"] < result["requests"] * 0.99:
            raise Unavailable(f"POST /v1/changes: {result['statuses']}")
        return result

    def raw_commits(self):
        rates = {}
        for name, (_, places, _, _) in self.FORMS.items():
            database = WORK / "raw.sqlite"
            remove_database(database)
            rates[name] = run_json(["taskset", "-c", self.cores.server, WORK / "batch_commit", database, places, 700,
                                    1 if self.quick else 2])["changesPerSecond"]
            remove_database(database)
        return rates

    def nchan_publishes(self):
        """As many streams, each on the channel of an id; every message is for one of 100 of them."""
        try:
            with Nchan().start(self.cores.server) as process:
                held = Load("sse_load", self.cores.load[0], port=process.port, mode="hold", threads=1, streams=self.many,
                            path="/sub/{n}", event="")
                held.ready()
                result = load("http_load", self.cores.load[-1], port=process.port, connections=64, threads=1, method="POST",
                              path="/pub/{u}", users=self.many // 100, body=item("{u}"), seconds=self.seconds, warmup=0.3)
                held.result()
                return result["goodRps"]
        except (Unavailable, OSError) as error:
            say(f"bench:   nchan: {error}")
            return None

    # -- a morning in a school ---------------------------------------------------------------------------------

    def morning(self):
        """The teachers of all classes save the attendance of 20 students each, within one second. The tables are the
        shipped school's."""
        classes, size = (4, 20) if self.quick else (20, 20)
        school = School(classes, size)
        server = Bellhop(self.bench.executable("bellhop"), database=WORK / "changes.sqlite", tenant=School.name)
        watching = {}
        with server.start(self.cores.server) as process:
            server.call(process, "POST", "/v1/changes", school.memberships())
            for role, tokens in school.people().items():
                path = WORK / f"tokens-{role}.txt"
                path.write_text("".join(line + "\n" for line in tokens))
                options = {"port": process.port, "mode": "hold", "threads": 1, "path": "/v1/stream", "tokens": path,
                           "ready_event": "stream:ready", "open_timeout": 90}
                watching[role] = (len(tokens), Load("sse_load", self.cores.all_load(), streams=len(tokens),
                                                    event="query:invalidate", **options))
            # What the admin's browser would get without filter and query keys: every row.
            watching["unfiltered"] = (1, Load(
                "sse_load", self.cores.all_load(), streams=1, event="table:change",
                subscriptions=subscription_file("rows", [[subscription("attendance", event="*")]]),
                **dict(options, tokens=WORK / "tokens-admin.txt")))
            for _, held in watching.values():
                held.ready()
            time.sleep(2.5)
            begin = time.monotonic()
            for number in range(classes):
                server.call(process, "POST", "/v1/changes", school.attendance(number))
            took = time.monotonic() - begin
            time.sleep(1.6)
            results = {role: (count, held.result()) for role, (count, held) in watching.items()}
        rows = classes * size
        _, unfiltered = results.pop("unfiltered")
        if unfiltered["delivered"] != rows:
            raise Unavailable(f"{unfiltered['delivered']} of {rows} rows were told to who asked for all")
        table = []
        for role, (count, result) in results.items():
            events, size_of = result["delivered"] / count, result["eventBytes"] / count
            table.append([f"{role} ({count:,})", f"{events:.2f}", f"{size_of:,.0f}", f"{rows:,}",
                          f"{unfiltered['eventBytes']:,}", f"{100 * (1 - events / rows):.2f} %",
                          f"{100 * (1 - size_of / unfiltered['eventBytes']):.2f} %"])
        teachers = results["teacher"][1]["delivered"] / results["teacher"][0]
        self.report.add(Row(
            f"Morning rush: {classes} classes, {size} rows each within {took:.2f} s, events a teacher hears", "≤ 2 (1 a window)",
            f"{teachers:.2f}", f"unfiltered: {rows:,}", f"{teachers / rows:.4f}", "yes" if teachers <= 2 else "NO"))
        self.report.add_curve(f"Morning rush, {classes} classes, {rows:,} rows: what one stream gets", [
            "who (streams)", "events", "bytes", "events unfiltered", "bytes unfiltered", "fewer events", "fewer bytes"], table)

    # -- a day of likes ----------------------------------------------------------------------------------------

    DAY = 100_000  # likes and reposts, as the document of the observer counts them
    POSTS = 100_000

    def day_of_likes(self):
        """Users with 100 posts on the screen; the likes go to any of 100,000 posts. A part of a day is told at 1,000 a
        second, and counted for the whole day."""
        users, told = (200, 4_000) if self.quick else (1_000, 10_000)
        server = self.server(shards=2)
        seen = ([subscription("posts", [item_id(post) for post in range(user, self.POSTS, self.POSTS // IDS)])]
                for user in range(users))
        with server.start(self.cores.two_servers or self.cores.server) as process:
            common = {"port": process.port, "mode": "hold", "threads": 1}
            filtered = Load("sse_load", self.cores.load[0], subscriptions=subscription_file("posts", seen),
                            **common, **self.streams(users, "engagement_update"))
            filtered.ready()
            everything = Load("sse_load", self.cores.load[0], subscriptions=subscription_file(
                "all", [[subscription("all_posts")]]), **common, **self.streams(1, "table:change"))
            everything.ready()
            begin = time.monotonic()
            for start in range(0, told, 100):
                # A walk over all posts in steps without a common factor, so that neighbours are far apart.
                posts = [(start + place) * 7_919 % self.POSTS for place in range(100)]
                self.post(process, server, [like(table, post) for table in ("posts", "all_posts") for post in posts])
                time.sleep(max(0, begin + (start + 100) / 1_000 - time.monotonic()))
            time.sleep(1.0)
            ours, theirs = filtered.result(), everything.result()
        whole = self.DAY / told
        events, size = ours["delivered"] / users * whole, ours["eventBytes"] / users * whole
        all_events, all_size = theirs["delivered"] * whole, theirs["eventBytes"] * whole
        if theirs["delivered"] != told:
            raise Unavailable(f"{theirs['delivered']} of {told} rows were told to who asked for all")
        what = "A day of likes (100,000 on 100,000 posts), 100 posts on the screen, per user and day"
        for name, few, many, unit in (("events", events, all_events, ""), ("KB", size / 1e3, all_size / 1e3, " KB")):
            less = 100 * (1 - few / many)
            self.report.add(Row(f"{what}: {name}", "≥ 99 % fewer", f"{few:,.0f}{unit}", f"unfiltered: {many:,.0f}{unit}",
                                f"{less:.2f} %", "yes" if less >= 99 else "NO"))

    def post(self, process, server, bodies):
        status, answer = request(process.port, "POST", "/v1/changes", "[" + ",".join(bodies) + "]", {
            "Authorization": f"Bearer {server.service}", "Content-Type": "application/json"})
        if status != 202 or b'"rejected":[]' not in answer:
            raise Unavailable(f"POST /v1/changes: {status} {answer[:200]!r}")

    # -- memory ------------------------------------------------------------------------------------------------

    def memory(self):
        streams = self.many
        wishes = ([subscription("items", [item_id(i) for i in range(stream, streams * IDS, streams)])]
                  for stream in range(streams))
        server = self.server()
        with server.start(self.cores.server) as process:
            common = {"port": process.port, "mode": "hold", "threads": 1}
            warm = Load("sse_load", self.cores.all_load(), subscriptions=subscription_file("warm", [[]]), **common,
                        **self.streams(200, ""))
            warm.ready()
            warm.result()
            time.sleep(0.5)
            empty = process.resident_bytes()
            idle = Load("sse_load", self.cores.all_load(), **common, **self.streams(streams, ""))
            idle.ready()
            time.sleep(1.0)
            without = (process.resident_bytes() - empty) / 1024 / streams
            idle.result()
        with server.start(self.cores.server) as process:
            common["port"] = process.port
            empty = process.resident_bytes()
            held = Load("sse_load", self.cores.all_load(), subscriptions=subscription_file("memory", wishes), **common,
                        **self.streams(streams, ""))
            held.ready()
            time.sleep(1.0)
            with_ids = (process.resident_bytes() - empty) / 1024 / streams
            held.result()
        self.report.add(Row.at_most(f"Memory per idle stream with tables declared, {streams:,} streams", 1.5, without, unit="KiB"))
        self.report.add(Row(
            f"Memory per stream with 100 filtered ids of 36 bytes, {streams:,} streams", "", f"{with_ids:.1f} KiB",
            "the ids alone: 3.5 KiB", "", "–"))

    # -- latency -----------------------------------------------------------------------------------------------

    def latency(self):
        """50 changes a second, each a row for 1,000 streams; and 20 a second, each a query key for all of them. Two shards
        where there are cores for them, as for any event."""
        streams = 200 if self.quick else 1_000
        server = self.server(shards=2 if self.cores.two_servers else 1, settings={"BELLHOP_PIN_SHARDS": "true"})
        common = {"mode": "paced", "threads": self.bench.client_threads, "warmup": 0.5, "seconds": max(2, 2 * self.seconds),
                  "publish_header": server.publisher, "subscriptions": subscription_file("every", [[subscription("items")]])}
        with server.start(self.cores.two_servers or self.cores.server) as process:
            common.update(port=process.port, server_pid=process.pid)
            rows, asleep = (load("sse_load", self.cores.all_load(), rate=50, marker='"n":', publish_body=item("{n}"),
                                 poll=polls, **common, **CHANGES, **self.streams(streams, "table:change"))
                            for polls in (True, False))
            page = {"id": "{n}", "title": "A page"}
            keys = load("sse_load", self.cores.all_load(), rate=20, marker='"recordId":"', later_ms=1_000,
                        publish_body=change("pages", page, kind="INSERT"), **common, **CHANGES,
                        **self.streams(streams, "query:invalidate"))
        # Keys whose windows end together come in one event, and the load client times the first of them.
        for name, result, together in (("rows", rows, 0.02), ("keys", keys, 0.5)):
            wanted = result["lost"] + result["delivered"]
            if not result["delivered"] or result["lost"] > wanted * together:
                raise Unavailable(f"{name}: {result['lost']:,} of {wanted:,} were not heard")
        for part, goal in (("p50", 3), ("p99", 4.5)):
            self.report.add(Row.at_most(
                f"Change of a row → client, {streams:,} streams, 50/s to all, {part} (from sending the request)", goal,
                rows["latencyUs"][part] / 1000, unit="ms",
                peers=f"to a client that sleeps: {asleep['latencyUs'][part] / 1000:.2f} ms"))
        for part in ("p50", "p99", "max"):
            late = keys["sinceAnswerUs"][part] / 1000
            self.report.add(Row.at_most(
                f"Window of 1 s: `query:invalidate` after its end, {streams:,} streams, 20 keys/s to all, {part}", 50, late,
                unit="ms", peers=f"from sending the request: {keys['latencyUs'][part] / 1000:.1f} ms"))


def like(table, post):
    """One more like, as a webhook tells it: the whole row, before and after."""
    def row(likes):
        return {"id": item_id(post), "user_id": f"u{post}", "visibility": "public", "like_count": likes, "repost_count": 3,
                "caption": "Sunset over the old harbour, with boats", "created_at": "2025-10-18T09:30:00Z"}
    return change(table, row(41 + post % 7), row(40 + post % 7))


class School:
    """Classes with their teachers, students and one parent of each."""
    name = "A"

    def __init__(self, classes, size):
        self.classes, self.size = classes, size

    def students(self, number):
        return [f"s{number}-{place}" for place in range(self.size)]

    def memberships(self):
        rows = []
        for number in range(self.classes):
            rows.append(("classes", {"id": f"c{number}", "school_id": self.name, "teacher_id": f"t{number}"}))
            for student in self.students(number):
                rows.append(("students", {"id": student, "school_id": self.name, "class_id": f"c{number}", "points": 0}))
                rows.append(("parent_students", {"parent_id": f"p-{student}", "student_id": student, "school_id": self.name}))
        return [json.loads(change(table, record, kind="INSERT")) for table, record in rows]

    def attendance(self, number):
        return [json.loads(change("attendance", {
            "id": f"a-{student}", "school_id": self.name, "student_id": student, "class_id": f"c{number}",
            "marked_by": f"t{number}", "status": "present", "date": "2026-03-02"}, kind="INSERT"))
            for student in self.students(number)]

    def people(self):
        def person(subject, role, **claims):
            return token(subject, role="authenticated", tenant=self.name,
                         app_metadata=dict(claims, user_role=role, school_id=self.name))
        students = [student for number in range(self.classes) for student in self.students(number)]
        return {
            "teacher": [person(f"t{number}", "teacher") for number in range(self.classes)],
            "parent": [person(f"p-{student}", "parent") for student in students],
            "student": [person(student, "student", student_id=student) for student in students],
            "admin": [person("admin", "admin")],
        }


def names(mark, places):
    """Of the rows of one delivery: the number of the delivery and the place in it, as digits in a row."""
    if places == 1:
        return [mark + "{u}"]
    digits = len(str(places - 1))
    return [f"{mark}{{u}}{place:0{digits}d}" for place in range(places)]


def run_json(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Unavailable(f"{command[3]} failed: {done.stderr.strip()[:200]}")
    return json.loads(done.stdout)


def told_rows(process):
    _, body = request(process.port, "GET", "/metrics")
    for line in body.decode().splitlines():
        if line.startswith("bellhop_stream_events_total "):
            return int(float(line.split()[-1]))
    raise Unavailable("/metrics does not count what was told")

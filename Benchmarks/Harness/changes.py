"""Rows for table changes: filtered ids, ingest and routing, a morning in a school, a day of likes, memory, latency."""

import json
import time

from .machine import WORK, Unavailable, say
from .processes import Load, load, request, required_metric, run_json
from .report import Row, at_least, at_most
from .servers import Bellhop, Nchan, remove_database, token, token_file
from .turns import THIS, Servers

TABLES = __file__.replace("changes.py", "tables.yaml")
IDS = 100  # as many as one screen shows
CHANGE_BYTES = 535  # bytes that the service stores for one change, as text
CHANGES = {"publish_path": "/v1/changes", "publish_method": "POST"}


def item_id(number):
    """Returns an id as long as a UUID, with a number in it that a load client can fill in."""
    return f"{number}-0000-4000-8000-c0ffee000000"


def change(table, record, old=None, kind="UPDATE"):
    """Returns a change in the form of a database webhook."""
    return json.dumps({"type": kind, "schema": "public", "table": table, "record": record, "old_record": old},
                      separators=(",", ":"))


def item(number, value="{n}", table="items"):
    """Returns an update of one row. `value` distinguishes the changes; a load client fills it in."""
    def row(n):
        return {"id": item_id(number), "n": n, "title": "A row of ordinary length, as lists show them", "board": 7}
    return change(table, row(0), row(-1)).replace('"n":0', f'"n":{value}', 1)


def subscription(table, ids=None, event="UPDATE"):
    wish = {"table": table, "event": event}
    if ids is not None:
        wish["filter"] = f"id=in.({','.join(ids)})"
    return wish


def subscription_file(name, wishes):
    """Writes the subscriptions of each stream, one per line."""
    path = WORK / f"subscriptions-{name}.txt"
    with open(path, "w") as file:
        for tables in wishes:
            file.write(json.dumps({"tables": tables}) + "\n")
    return path


class ChangeRows:
    def __init__(self, bench):
        self.bench, self.report, self.cores, self.pace = bench, bench.report, bench.cores, bench.pace
        self.many = self.pace.pick(1_000, 10_000)

    def server(self, binary, shards=1, settings=None, **options):
        return Bellhop(binary, shards=shards, settings={"BELLHOP_TABLES": TABLES, **(settings or {})}, **options)

    def streams(self, count, event, **options):
        return {"streams": count, "path": "/v1/stream", "tokens": token_file(count), "ready_event": "stream:ready",
                "event": event, "open_timeout": 90, **options}

    # -- one change among many filtered ids --------------------------------------------------------------------

    def one_change(self):
        """Every stream filters 100 ids of its own; each change has one id, which one stream has subscribed to."""
        found = self.bench.take_turns(self.one_change_among_few_and_many, turns=2)
        self.report.add(Row.measured(
            f"CPU per change of one filtered id, {self.many * IDS:,} ids on {self.many:,} streams / {10 * IDS:,} on 10, "
            "its transaction included", found.ours(self.many), "µs", at_most(1.2), found.ours(10)))
        if self.pace.is_quick:
            return
        measured, table = found.last("measured"), []
        for streams in (10, 100, 1_000, self.many):
            one = measured.get(streams) or self.one_change_among(self.bench.this, streams)
            table.append([f"{streams:,}", f"{streams * IDS:,}", f"{one['cost']:.0f}", f"{one['answered']:.2f}",
                          f"{one['p50']:.2f}", f"{one['p99']:.2f}"])
        self.report.add_curve("One change of one filtered id, 100 ids on each stream, 1 server core", [
            "streams", "filtered ids", "CPU per change, µs", "202 → client, p50, ms", "request → client, p50, ms",
            "request → client, p99, ms"], table)

    def one_change_among_few_and_many(self, binary):
        measured = {streams: self.one_change_among(binary, streams) for streams in (10, self.many)}
        return {"measured": measured, **{streams: one["cost"] for streams, one in measured.items()}}

    def one_change_among(self, binary, streams):
        server = self.server(binary)
        ids = streams * IDS
        wishes = ([subscription("items", [item_id(i) for i in range(stream, ids, streams)])] for stream in range(streams))
        with server.start(self.cores.server) as process:
            result = load("sse_load", self.cores.all_load(), port=process.port, mode="closed", threads=1, window=1, expect=1,
                          subscriptions=subscription_file("ids", wishes), seconds=self.pace.seconds, warmup=self.pace.warmup,
                          server_pid=process.pid, users=ids, marker='"n":', publish_header=server.publisher,
                          publish_body=item("{u}"), **CHANGES, **self.streams(streams, "table:change"))
        if result["lost"] > 1 or result["published"] < 50:
            raise Unavailable(f"{result['lost']} changes did not arrive, {result['published']} were made: {result['statuses']}")
        return {"cost": result["serverUsPerPublish"], "answered": result["sinceAnswerUs"]["p50"] / 1000,
                "p50": result["latencyUs"]["p50"] / 1000, "p99": result["latencyUs"]["p99"] / 1000}

    # -- ingest and routing ------------------------------------------------------------------------------------

    # The load of one run: changes per batch, deliveries, connections.
    FORMS = {
        "batches of 1,000": ("a", 1_000, 50, 4),
        "batches of 100": ("b", 100, 500, 8),
        "single webhooks, 64 connections": ("c", 1, 20_000, 64),
    }
    BOARDS = 100

    def wishes(self, streams):
        """Yields 100 ids for each stream. 1 % of the streams watch changing rows, each row watched by one stream. Every
        change of a note is delivered to 1 %."""
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

    # The goal of each form: a ratio to SQLite alone, which writes as many rows, or else a rate per second.
    FORM_GOALS = {
        "batches of 1,000": at_least(10_000, "/s"),
        "batches of 100": at_least(0.35),
        "single webhooks, 64 connections": at_least(1.5),
    }

    def ingest(self):
        """10,000 streams with 100 ids each. 100 of them (1 %) watch changing rows, each row watched by one stream.
        Every change of a note is delivered to 1 % of the streams. The streams are opened once for all turns."""
        with Servers() as servers:
            found = self.bench.take_turns(
                lambda binary: self.ingested(servers.get(binary, lambda: Watched(self, self.server(binary, shards=2)))),
                {"sqlite": self.raw_commits, "nchan": self.nchan_publishes})
        single = "single webhooks, 64 connections"
        for name, goal in self.FORM_GOALS.items():
            ours, sqlite = found.ours(name), found.peer("sqlite", name)
            self.report.add(Row.measured(
                f"Table changes stored on disk and delivered, {self.many:,} streams, 1 % of them subscribed: {name}",
                ours, "changes/s", goal, sqlite, beside=f"SQLite alone, a transaction each: {sqlite.text('changes/s')}"))
        self.report.add(Row.measured(
            f"Table changes, {single} / nchan in memory, a channel for each id, {self.many:,} streams",
            found.ours(single).alone(), "changes/s", None, found.peer("nchan", "rate"), "messages/s"))
        for part in ("p50", "p99"):
            self.report.add(Row.measured(f"202 of a batch of 1,000 changes, 10 batches a second, {part}", found.ours(part), "ms",
                                         at_most(100, "ms")))
        self.report.add_curve(f"Table changes with {self.many:,} streams, {self.report.cores} cores", [
            "posted as", "streams that receive one", "changes per second, delivered", "changes per second, acknowledged",
            "rows delivered per second", "202, p50, ms", "202, p99, ms", "CPU per change, µs"], found.last("table"))

    def ingested(self, watched):
        process, server, changing = watched.process, watched.server, self.many // 100 * IDS
        table, figures = [], {}
        for name, (mark, places, requests, connections) in self.FORMS.items():
            bodies = [item(one) for one in names(mark, places)]
            run = self.ingest_bodies(process, server, bodies, 1, changing // places, requests // self.pace.pick(10, 1), connections)
            figures[name] = run["rate"]
            watched.wanted += run["delivered"]
            table.append(self.cells(name, "1", run))
        bodies = [item("{u}", table="notes").replace('"board":7', f'"board":{place}') for place in range(100)]
        run = self.ingest_bodies(process, server, bodies, self.many // self.BOARDS, 1, self.pace.pick(10, 100), 2)
        watched.wanted += run["delivered"]
        table.append(self.cells("batches of 100", f"{self.many // self.BOARDS:,}", run))
        mark, places, _, _ = self.FORMS["batches of 1,000"]
        paced = self.post_paced(process, server, [item(one) for one in names(mark, places)], changing // places)
        watched.wanted += paced["requests"] * 1_000
        time.sleep(self.pace.pick(0.3, 1))
        return {**figures, "table": table, **{part: paced["latencyUs"][part] / 1000 for part in ("p50", "p99")}}

    @staticmethod
    def cells(name, receivers, run):
        return [name, receivers, f"{run['rate']:,.0f}", f"{run['acknowledged']:,.0f}", f"{run['deliveryRate']:,.0f}",
                f"{run['latencyUs']['p50'] / 1000:.1f}", f"{run['latencyUs']['p99'] / 1000:.1f}",
                f"{run['serverUsPerRequest'] / run['places']:.1f}"]

    def ingest_bodies(self, process, server, bodies, receivers, users, requests, connections, deliverer=None):
        """Posts this number of requests as fast as they are answered, and waits until the last row was sent to its
        streams, which may belong to another replica."""
        deliverer = deliverer or process
        before = delivered_rows(deliverer)
        begin = time.monotonic()
        result = self.post_load(process, server, bodies, users, connections, count=requests, seconds=120)
        wanted = requests * len(bodies) * receivers
        while (delivered := delivered_rows(deliverer) - before) < wanted:
            if time.monotonic() > begin + 120:
                raise Unavailable(f"{delivered:,} of {wanted:,} rows were delivered within 120 s")
            time.sleep(0.01)
        took = time.monotonic() - begin
        changes = requests * len(bodies)
        return dict(result, delivered=delivered, places=len(bodies), rate=changes / took, deliveryRate=delivered / took,
                    acknowledged=changes / result["seconds"])

    def post_paced(self, process, server, bodies, users):
        return self.post_load(process, server, bodies, users, 4, rate=10, seconds=self.pace.pick(1, 5), warmup=0.3)

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
            rates[name] = run_json(WORK / "batch_commit", database, places, CHANGE_BYTES, self.pace.pick(0.4, 1.5),
                                   cores=self.cores.server)["changesPerSecond"]
            remove_database(database)
        return rates

    def nchan_publishes(self):
        """As many streams, each on the channel of an id; every message goes to one of 100 of them."""
        with Nchan().start(self.cores.server) as process:
            held = Load("sse_load", self.cores.load[0], port=process.port, mode="hold", threads=1, streams=self.many,
                        path="/sub/{n}", event="")
            held.ready()
            result = load("http_load", self.cores.load[-1], port=process.port, connections=64, threads=1, method="POST",
                          path="/pub/{u}", users=self.many // 100, body=item("{u}"), seconds=self.pace.seconds, warmup=0.3)
            held.result()
            return {"rate": result["goodRps"]}

    # -- a morning in a school ---------------------------------------------------------------------------------

    def morning(self):
        """The teachers of all classes save the attendance of 20 students each, within one second. The tables are those
        of Deploy/tables/school.yaml."""
        school = School(self.pace.pick(4, 20), 20)
        found = self.bench.take_turns(lambda binary: self.one_morning(binary, school), once=True)
        rows = school.classes * school.size
        self.report.add(Row.measured(
            f"Morning rush: {school.classes} classes, {school.size} rows each within a second, events per teacher",
            found.ours("teacher"), "", at_most(2, "", "≤ 2 (1 a window)"), found.peer(THIS, "rows"), is_steady=True,
            beside=f"unfiltered: {rows:,}"))
        unfiltered, table = found.last("unfiltered"), []
        for role, (count, result) in found.last("roles").items():
            events, size = result["delivered"] / count, result["eventBytes"] / count
            table.append([f"{role} ({count:,})", f"{events:.2f}", f"{size:,.0f}", f"{rows:,}",
                          f"{unfiltered['eventBytes']:,}", f"{100 * (1 - events / rows):.2f} %",
                          f"{100 * (1 - size / unfiltered['eventBytes']):.2f} %"])
        self.report.add_curve(f"Morning rush, {school.classes} classes, {rows:,} rows: what one stream gets", [
            "who (streams)", "events", "bytes", "events unfiltered", "bytes unfiltered", "fewer events", "fewer bytes"], table)

    def one_morning(self, binary, school):
        server = Bellhop(binary, tenant=School.name)
        with server.start(self.cores.server) as process:
            server.call(process, "POST", "/v1/changes", school.memberships())
            watching = {role: (len(tokens), self.watch_school(process, role, tokens, event="query:invalidate"))
                        for role, tokens in school.people().items()}
            # The admin's browser without filters and query keys receives every row.
            everything = self.watch_school(
                process, "all", school.people()["admin"], event="table:change",
                subscriptions=subscription_file("rows", [[subscription("attendance", event="*")]]))
            for _, held in [*watching.values(), (1, everything)]:
                held.ready()
            time.sleep(self.pace.pick(1.5, 2.5))
            begin = time.monotonic()
            for number in range(school.classes):
                server.call(process, "POST", "/v1/changes", school.attendance(number))
            if (took := time.monotonic() - begin) > 1:
                raise Unavailable(f"the attendance was saved in {took:.2f} s, and not within one")
            time.sleep(1.6)
            roles = {role: (count, held.result()) for role, (count, held) in watching.items()}
            unfiltered = everything.result()
        rows = school.classes * school.size
        if unfiltered["delivered"] != rows:
            raise Unavailable(f"{unfiltered['delivered']} of {rows} rows went to who asked for all")
        return {"teacher": roles["teacher"][1]["delivered"] / roles["teacher"][0], "rows": rows, "roles": roles,
                "unfiltered": unfiltered}

    def watch_school(self, process, name, tokens, **options):
        path = WORK / f"tokens-{name}.txt"
        path.write_text("".join(line + "\n" for line in tokens))
        return Load("sse_load", self.cores.all_load(), streams=len(tokens), port=process.port, mode="hold", threads=1,
                    path="/v1/stream", tokens=path, ready_event="stream:ready", open_timeout=90, **options)

    # -- a day of likes ----------------------------------------------------------------------------------------

    DAY = 100_000  # likes and reposts per day, as R-ENG-E-9 assumes
    POSTS = 100_000

    def day_of_likes(self):
        """Users have 100 posts on the screen; the likes go to any of 100,000 posts. A part of a day is posted at 1,000
        per second, and the result is scaled to the whole day."""
        found = self.bench.take_turns(self.part_of_a_day, once=True)
        what = "A day of likes (100,000 on 100,000 posts), 100 posts on the screen, per user and day"
        for unit in ("events", "KB"):
            everything = found.peer(THIS, ("unfiltered", unit))
            self.report.add(Row.measured(f"{what}: {unit}", found.ours(unit), unit, at_most(0.01, wording="≥ 99 % fewer"),
                                         everything, beside=f"unfiltered: {everything.text(unit)}", is_steady=True))

    def part_of_a_day(self, binary):
        users, posted = self.pace.pick((200, 2_000), (1_000, 10_000))
        server = self.server(binary, shards=2)
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
            self.like(process, server, posted)
            time.sleep(self.pace.pick(0.5, 1.0))
            ours, theirs = filtered.result(), everything.result()
        if theirs["delivered"] != posted:
            raise Unavailable(f"{theirs['delivered']} of {posted} rows went to who asked for all")
        whole = self.DAY / posted
        return {"events": ours["delivered"] / users * whole, "KB": ours["eventBytes"] / users * whole / 1e3,
                ("unfiltered", "events"): theirs["delivered"] * whole, ("unfiltered", "KB"): theirs["eventBytes"] * whole / 1e3}

    def like(self, process, server, count):
        begin = time.monotonic()
        for start in range(0, count, 100):
            # Visits all posts in steps without a common factor, so that neighbouring posts are far apart.
            posts = [(start + place) * 7_919 % self.POSTS for place in range(100)]
            self.post(process, server, [like(table, post) for table in ("posts", "all_posts") for post in posts])
            time.sleep(max(0, begin + (start + 100) / 1_000 - time.monotonic()))

    def post(self, process, server, bodies):
        status, answer = request(process.port, "POST", "/v1/changes", "[" + ",".join(bodies) + "]", {
            "Authorization": f"Bearer {server.service}", "Content-Type": "application/json"})
        if status != 202 or b'"rejected":[]' not in answer:
            raise Unavailable(f"POST /v1/changes: {status} {answer[:200]!r}")

    # -- memory ------------------------------------------------------------------------------------------------

    def memory(self):
        found = self.bench.take_turns(lambda binary: {
            "idle": self.memory_of(binary, lambda process: self.warm(process), ""),
            "filtered": self.memory_of(binary, lambda process: None, self.ids_of_all())}, once=True)
        self.report.add(Row.measured(f"Memory per idle stream with tables declared, {self.many:,} streams", found.ours("idle"),
                                     "KiB", at_most(1.4, "KiB"), is_steady=True))
        self.report.add(Row.measured(f"Memory per stream with 100 filtered ids of 36 bytes, {self.many:,} streams",
                                     found.ours("filtered"), "KiB", beside="the ids alone: 3.5 KiB", is_steady=True))

    def ids_of_all(self):
        return subscription_file("memory", ([subscription("items", [
            item_id(i) for i in range(stream, self.many * IDS, self.many)])] for stream in range(self.many)))

    def warm(self, process):
        """Opens and closes streams first, so that the pages that a process touches for its first streams are not
        counted."""
        streams = Load("sse_load", self.cores.all_load(), subscriptions=subscription_file("warm", [[]]), port=process.port,
                       mode="hold", threads=1, **self.streams(200, ""))
        streams.ready()
        streams.result()
        time.sleep(0.5)

    def memory_of(self, binary, prepare, subscriptions):
        """Returns the KiB per stream of many idle streams."""
        with self.server(binary).start(self.cores.server) as process:
            prepare(process)
            empty = process.resident_bytes()
            held = Load("sse_load", self.cores.all_load(), subscriptions=subscriptions or None, port=process.port, mode="hold",
                        threads=1, **self.streams(self.many, ""))
            held.ready()
            time.sleep(self.pace.pick(0.5, 1.0))
            grown = process.resident_bytes() - empty
            held.result()
        return grown / 1024 / self.many

    # -- latency -----------------------------------------------------------------------------------------------

    def latency(self):
        """50 changes per second, each a row for 1,000 streams; and 20 per second, each a query key for all of them. Two
        shards where there are cores for them, as for any event."""
        streams = self.pace.pick(200, 1_000)
        with Servers() as servers:
            def started(binary):
                server = self.server(binary, shards=2 if self.cores.two_servers else 1, settings={"BELLHOP_PIN_SHARDS": "true"})
                return server, servers.get(binary, lambda: server.start(self.cores.two_servers or self.cores.server))

            def service(binary):
                rows = self.paced_rows(*started(binary), streams, polls=True)
                keys = self.paced_keys(*started(binary), streams)
                return {**{("row", part): rows["latencyUs"][part] / 1000 for part in ("p50", "p99")},
                        **{(moment, part): keys[moment][part] / 1000 for moment in ("sinceAnswerUs", "latencyUs")
                           for part in ("p50", "p99", "max")}}

            found = self.bench.take_turns(service)
            asleep = self.paced_rows(*started(self.bench.this), streams, polls=False)
        for part, goal in (("p50", 3), ("p99", 4.5)):
            self.report.add(Row.measured(
                f"Change of a row → client, {streams:,} streams, 50/s to all, {part} (from sending the request)",
                found.ours(("row", part)), "ms", at_most(goal, "ms"),
                beside=f"to a sleeping client: {asleep['latencyUs'][part] / 1000:.2f} ms"))
        for part in ("p50", "p99", "max"):
            self.report.add(Row.measured(
                f"Window of 1 s: `query:invalidate` after its end, {streams:,} streams, 20 keys/s to all, {part}",
                found.ours(("sinceAnswerUs", part)), "ms", at_most(50, "ms"),
                beside=f"from sending the request: {found.peer(THIS, ('latencyUs', part)).text('ms')}"))

    def paced_rows(self, server, process, streams, polls):
        return self.paced(server, process, streams, 0.02, "table:change", rate=50, marker='"n":', publish_body=item("{n}"),
                          poll=polls)

    def paced_keys(self, server, process, streams):
        """Measures keys. Keys whose windows end together arrive in one event, and the load client measures the first of
        them."""
        page = {"id": "{n}", "title": "A page"}
        return self.paced(server, process, streams, 0.5, "query:invalidate", rate=20, marker='"recordId":"', later_ms=1_000,
                          publish_body=change("pages", page, kind="INSERT"))

    def paced(self, server, process, streams, together, event, **options):
        result = load("sse_load", self.cores.all_load(), port=process.port, server_pid=process.pid, mode="paced",
                      threads=self.bench.client_threads, warmup=self.pace.warmup, seconds=self.pace.pick(1.2, 3),
                      publish_header=server.publisher, subscriptions=subscription_file("every", [[subscription("items")]]),
                      **options, **CHANGES, **self.streams(streams, event))
        wanted = result["lost"] + result["delivered"]
        if not result["delivered"] or result["lost"] > wanted * together:
            raise Unavailable(f"{event}: {result['lost']:,} of {wanted:,} did not arrive")
        return result


class Watched:
    """A server of the service with streams that watch its rows; at the end it counts the received rows."""

    def __init__(self, rows, server):
        self.rows, self.server, self.wanted = rows, server, 0

    def __enter__(self):
        rows = self.rows
        self.process = self.server.start(rows.cores.two_servers or rows.cores.server)
        self.streams = Load("sse_load", rows.cores.load[0], port=self.process.port, mode="hold", threads=1,
                            subscriptions=subscription_file("ingest", rows.wishes(rows.many)),
                            **rows.streams(rows.many, "table:change"))
        self.streams.ready()
        return self

    def __exit__(self, *_):
        received = self.streams.result()
        if received["delivered"] < self.wanted:
            say(f"bench:   of {self.wanted:,} rows {received['delivered']:,} arrived; "
                f"the server closed {received['closedByServer']} streams")
        self.process.stop()


def like(table, post):
    """Returns one more like in the form of a webhook: the whole row, before and after."""
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
            return token(subject, role, tenant=self.name, **claims)
        students = [student for number in range(self.classes) for student in self.students(number)]
        return {
            "teacher": [person(f"t{number}", "teacher") for number in range(self.classes)],
            "parent": [person(f"p-{student}", "parent") for student in students],
            "student": [person(student, "student", student_id=student) for student in students],
            "admin": [person("admin", "admin")],
        }


def names(mark, places):
    """Returns the names of the rows of one delivery: the number of the delivery and the index in it, as consecutive
    digits."""
    if places == 1:
        return [mark + "{u}"]
    digits = len(str(places - 1))
    return [f"{mark}{{u}}{place:0{digits}d}" for place in range(places)]


def delivered_rows(process):
    return int(required_metric(process, "bellhop_stream_events_total"))

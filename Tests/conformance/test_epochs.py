"""Cases about epochs."""

import json

from kit.citing import cites


def epoch(identifier):
    return identifier.rpartition("-")[0]


@cites("S-EPOCH-1")
def test_ids_of_one_log_have_one_epoch(bellhop, user):
    stream = user.open()
    user.send(1, 2)
    user.drain(stream)
    other = bellhop.user().open()
    resync = user.open(last="unreadable").next("stream:resync")
    ids = [block.id for block in stream.blocks if block.id] + [other.ready.id, resync.id]
    assert len(ids) >= 5
    assert len({epoch(text) for text in ids}) == 1
    assert epoch(ids[0])


@cites("S-EPOCH-2")
def test_restart_keeps_the_epoch(process):
    user = process.user()
    before = epoch(user.open().ready.id)
    process.process.stop()
    process.process.start()
    assert epoch(user.open().ready.id) == before


@cites("S-EPOCH-3")
def test_new_database_has_another_epoch(process, tmp_path):
    user = process.user()
    old = user.open().ready.id
    process.process.stop()
    process.process.environment["BELLHOP_DATABASE"] = f"sqlite:{tmp_path / 'new.sqlite'}"
    process.process.start()
    stream = user.open(last=old)
    assert epoch(stream.ready.id) != epoch(old)
    assert json.loads(stream.next("stream:resync").data) == {"reason": "epoch"}


@cites("S-EPOCH-4")
def test_counts_have_a_version_and_an_epoch(bellhop, user):
    stream = user.open()
    versions = [stream.about["badges"]]
    for _ in range(2):
        draft = {"userId": user.id, "category": "system", "priority": "NORMAL", "title": "A", "message": "B"}
        assert bellhop.backend.request("POST", "/v1/notifications", draft).status == 201
        versions.append(json.loads(stream.next("badges:update").data))
    assert len({counts["epoch"] for counts in versions}) == 1
    numbers = [counts["version"] for counts in versions]
    assert numbers == sorted(set(numbers))

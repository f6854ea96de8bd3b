#!/usr/bin/env python3
"""Replaces the replicas of one version by those of another, one after another, as a rolling upgrade does, while writers
write and streams listen. No event is lost or doubled, and no request is refused because of it.

    Tests/crash/upgrade.py --old old/bellhop --new .build/debug/bellhop [--seed 1] [--rounds 3]

`gently`: the database is migrated under the old replicas, which then stop and are replaced in turn. `killed`: they are
killed in the middle of messages, scores and votes. The checks are those of replicas.py.
"""

import argparse
import os
import random
import shutil
import signal
import sys

import crowd
from harness import postgres
from harness.waiting import PATIENCE_SECONDS, Failed
from replicas import Stage, prefer_living_replica, users_of
from witnesses import Listeners, Load


class Upgrade(Stage):
    """A database with two replicas of the old version, and the steps of their upgrade."""

    def migrate(self):
        """Migrates as the owner, while the old replicas serve."""
        self.options.binary = self.options.new
        command = self.spawn("migrate", "--database", self.owner_url())
        printed, _ = command.communicate(timeout=PATIENCE_SECONDS)
        if command.returncode != 0:
            raise Failed(f"bellhop migrate of the new version ended with {command.returncode}: {printed}")
        return [line for line in printed.splitlines() if line.strip()]

    def start_new(self, replica):
        replica.binary = self.options.new
        replica.start()


def gently(stage):
    users = users_of("gently", 20)
    with stage.running(BELLHOP_DRAIN_SECONDS="1") as replicas:
        alive = set(replicas)
        with Listeners(stage.streams(users, replicas, prefer_living_replica(alive))) as listeners:
            # A connection may end between a response and the next request on it.
            with Load(replicas, users, f"{stage.options.seed}-gently", may_break=True) as load:
                load.wait_for(300)
                steps = stage.migrate()
                load.wait_for(300)
                for replica in replicas:
                    alive.discard(replica)
                    replica.stop()
                    load.wait_for(100)
                    stage.start_new(replica)
                    alive.add(replica)
                    # Both versions run until each has written events that streams of the other received.
                    load.wait_for(300)
            stage.wait_until_told(listeners)
            resumptions = sum(len(stream.connections) - 1 for stream in listeners.streams)
            if resumptions == 0:
                raise Failed("no stream noticed that its replica was replaced")
        stage.judge(load, listeners)
        stage.check()
        return (
            f"{load.acknowledged} writes, {resumptions} resumptions, {load.refusals} refused, the migration said: "
            f"{steps[-1] if steps else 'nothing'}"
        )


def killed(stage):
    with stage.running() as replicas:
        alive = set(replicas)
        people = crowd.Crowd(replicas, "crowd", stage.options.seed)

        def replace(blow):
            alive.discard(blow.victim)
            people.strike(blow)
            stage.wait_until_missed(blow.victim)
            if stage.options.binary != stage.options.new:
                stage.migrate()
            stage.start_new(blow.victim)
            alive.add(blow.victim)
            stage.wait_until_ready(True, "/readyz to tell that both replicas are there")

        with Listeners(stage.streams(people.users, replicas, prefer_living_replica(alive))) as listeners:
            line = crowd.play(people, listeners, 6, replace)
            stage.judge_crowd(people, listeners)
        return line


def play(options, scenario, round_number):
    """Runs one upgrade on a separate database, because the new version cannot be downgraded."""
    folder = postgres.make_folder()
    stage = Upgrade(argparse.Namespace(binary=options.old, new=options.new, seed=options.seed + round_number), folder)
    try:
        stage.build()
        print(f"  {scenario.__name__}: {scenario(stage)}", flush=True)
        return True
    except (Failed, postgres.Trouble) as problem:
        print(f"  {scenario.__name__}: DIFFERS: {problem}", flush=True)
        for replica in stage.replicas:
            print(f"    {replica.name}: {replica.log()[-600:]}", flush=True)
        return False
    finally:
        stage.tear_down()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", required=True)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.old, options.new = os.path.abspath(options.old), os.path.abspath(options.new)
    print(f"upgrade: seed {options.seed}, {options.rounds} rounds", flush=True)
    # A terminated run stops its servers too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    is_well = all([play(options, scenario, number) for number in range(options.rounds) for scenario in (gently, killed)])
    if not is_well:
        print(f"upgrade: seed {options.seed}: differences", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

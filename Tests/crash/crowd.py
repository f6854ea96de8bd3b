#!/usr/bin/env python3
"""Users chat, play, vote and like while the service is killed. The test then checks three things against the
acknowledged writes: the state in the database, the view of every user at every replica, and the events of their
streams.

    Tests/crash/crowd.py --binary .build/debug/bellhop [--rounds 5] [--seed 1]

This script kills one process on SQLite; replicas.py runs the same crowd on several replicas. Needs only Python's
standard library. The choices follow from the seed, which is printed. The moment of a kill within a commit depends on
the machine.
"""

import collections
import contextlib
import json
import random
import select
import subprocess
import sys
import threading

from crash import Board, database_rows, replay_scores, run_script
from event_ids import IDS, SECRET_SQLITE
from harness.services import Service
from harness.waiting import PATIENCE_SECONDS, Failed, wait_until
from witnesses import Client, Listeners, Load, Log, Stream, judge_streams

SHOP = "/v1/shops/crowd"
# The score modes of challenges; each is also the name of a board.
MODES = ("add", "best")
# Small, so that most of the board is outside of the range.
AROUND = 1
# Longer than any request takes in normal operation.
BLOW_SECONDS_MAX = 0.03
# Fewer than the number of users, because a user with a lost response waits for it and does nothing else.
LOST_MAX = 4

Said = collections.namedtuple("Said", "id sender text")


class Place:
    """A member's position in a conversation."""

    def __init__(self, joined):
        self.joined = joined
        self.position = joined

    def target(self, sequence, may_rewind):
        """Returns the read position after a request: never before the joining, and backwards only if the request allows
        it."""
        wanted = max(sequence, self.joined)
        return wanted if may_rewind else max(wanted, self.position)


class Blow:
    """Kills a replica at one of its next requests: during it, after its response, or when several responses have
    arrived and were not read, as if they were lost on the way."""

    def __init__(self, victim, choices):
        self.victim = victim
        self.lost = choices.choice([0, 0, choices.randint(1, LOST_MAX)])
        self.moment = "sent" if self.lost else choices.choice(["sent", "sent", "answered"])
        # The number of requests until the kill.
        self.left = self.lost + choices.randint(1, 30)
        self.seconds = PATIENCE_SECONDS if self.lost else choices.random() ** 2 * BLOW_SECONDS_MAX
        self.is_done = threading.Event()

    def strike(self, connection, is_last):
        if self.moment == "sent":
            # Waits for the response, or for the chosen time, whichever comes first.
            select.select([connection.sock], [], [], self.seconds)
        if is_last:
            self.victim.kill()
            self.is_done.set()
        if self.lost:
            raise ConnectionResetError("the answer was lost")


class Crowd(Load):
    """Users at all replicas, and all responses that they got.

    Each user acts sequentially and therefore knows their own position, membership, vote or like. Numbers of messages
    and versions of boards determine the order of concurrent actions.
    """

    def __init__(self, replicas, name, seed, people=6):
        users = [f"{name}-{number}" for number in range(people)]
        super().__init__(replicas, users, seed, writers=0, readers=1, may_break=True)
        self.seed = seed
        # All users may be in all conversations; the first user of each never leaves.
        self.conversations = {f"{name}-talk-{number}": users[number] for number in range(3)}
        self.tracks = [f"track-{number}" for number in range(6)]
        self.posts = []
        self.blow = None
        # Acknowledged state, guarded by the lock.
        self.said = {conversation: {} for conversation in self.conversations}
        self.deleted = set()
        self.places = {}
        self.scores = {mode: [] for mode in MODES}
        self.votes = {("backend", track): "up" for track in self.tracks}
        self.likes = set()
        # The unanswered request of each user.
        self.pending = {}
        self.threads += [
            self.thread(Person(self, user, number).step, f"{seed}-{user}") for number, user in enumerate(users)
        ]

    def set_up(self):
        """Creates the shop, boards, posts and conversations. Streams are already open."""
        client = Client(self.replicas)

        def call(method, path, bearer, body, good):
            status, _, content = client.request(self.replicas[0], method, path, bearer, body)
            if status != good:
                raise Failed(f"{method} {path} answered {status}: {content[:300]!r}")
            return json.loads(content)

        try:
            call("PUT", SHOP, self.backend, {"name": "Crowd", "timeZone": "UTC"}, 201)
            call("PUT", f"{SHOP}/dj", self.backend, {"isActive": True}, 200)
            for track in self.tracks:
                names = {"trackId": track, "trackName": track, "artistName": "A"}
                call("POST", f"{SHOP}/dj/tracks", self.backend, names, 201)
            for user in self.users:
                call("PUT", f"{SHOP}/presence/me", self.bearers[user], None, 200)
            for mode in MODES:
                wish = {"name": mode, "startsAt": "2020-01-01T00:00:00Z", "endsAt": "2200-01-01T00:00:00Z", "mode": mode}
                call("PUT", board_path(mode), self.backend, wish, 201)
            for number in range(2):
                body = {"authorId": "author", "text": f"Post {number}"}
                self.posts.append(call("POST", "/v1/posts", self.backend, body, 201)["id"])
            for conversation in self.conversations:
                call("POST", "/v1/conversations", self.backend, {"id": conversation, "memberIds": self.users}, 201)
                self.places.update({(user, conversation): Place(0) for user in self.users})
        finally:
            client.close()

    # MARK: Kills

    def watch(self, replica, moment, connection):
        with self.lock:
            blow = self.blow
            if blow is None or blow.victim is not replica or blow.moment != moment:
                return
            blow.left -= 1
            if blow.left >= max(1, blow.lost):
                return
            if is_last := blow.left == 0:
                self.blow = None
        blow.strike(connection, is_last)

    def strike(self, blow):
        self.blow = blow
        wait_until(blow.is_done.is_set, f"requests at {blow.victim.name}", problems=self.problems)

    # MARK: Recount

    def check(self):
        """Compares the state at every replica with the acknowledged writes and returns it. No request is in flight,
        except those that wait for a retry: they may or may not have taken effect."""
        views = [View(self, replica) for replica in self.replicas]
        first = views[0]
        for other in views[1:]:
            first.compare(other)
        first.check_itself()
        self._check_talk(first)
        self._check_choices(first)
        for mode in MODES:
            self._check_board(mode, first)
        return first

    def _wishes(self, kind):
        """Returns the unanswered requests of one kind, whose effects may be visible."""
        return {user: wish[1:] for user, wish in self.pending.items() if wish[0] == kind}

    def _check_talk(self, view):
        sending, reading = self._wishes("send"), self._wishes("read")
        moving, deleting = self._wishes("move"), {identifier for identifier, in self._wishes("delete").values()}
        for conversation, history in view.histories.items():
            said = self.said[conversation]
            for message in history:
                known = said.get(message["sequence"])
                told = Said(message["id"], message["senderId"], message["text"])
                where = f"message {message['sequence']} of {conversation}"
                if known is None:
                    if sending.get(told.sender) != (conversation, told.text):
                        raise Failed(f"{where} was never acknowledged: {message}")
                elif told._replace(text="") != known._replace(text=""):
                    raise Failed(f"{where} was acknowledged as {known}, and is {told}")
                elif told.text != ("" if message["deletedAt"] else known.text):
                    raise Failed(f"{where} was sent as {known.text}: {message}")
                elif told.id not in deleting and (told.id in self.deleted) != (message["deletedAt"] is not None):
                    raise Failed(f"{where} should be {'deleted' if told.id in self.deleted else 'there'}: {message}")
            if lost := said.keys() - {message["sequence"] for message in history}:
                raise Failed(f"{conversation}: acknowledged, and not there: {sorted(lost)[:5]}")
            for user in self.users:
                place, seen = self.places.get((user, conversation)), view.places[user].get(conversation)
                if moving.get(user) == (conversation,):
                    continue
                told, known = seen and seen["readPosition"], place and place.position
                if told != known and reading.get(user) != (conversation, told):
                    raise Failed(f"{user} has read {conversation} up to {known}, and not {told}")

    def _check_choices(self, view):
        voting, liking = self._wishes("vote"), self._wishes("like")
        for user in self.users:
            for track, vote in view.votes[user].items():
                known = self.votes.get((user, track), "none")
                if vote != known and voting.get(user) != (track, vote):
                    raise Failed(f"{user} has voted {known} on {track}, and not {vote}")
            for post, is_liked in view.likes[user].items():
                is_known = (user, post) in self.likes
                if is_liked != is_known and liking.get(user) != (post, is_liked):
                    raise Failed(f"{user} {'likes' if is_known else 'does not like'} {post}, and the service says otherwise")

    def _check_board(self, mode, view):
        """Checks a board. While scores are in flight, the board contains at least the acknowledged ones."""
        scored = [(points, answer) for points, answer in self.scores[mode]]
        told = view.boards[mode]
        if any(wish[0] == mode for wish in self._wishes("score").values()):
            known = max((answer["version"] for _, answer in scored), default=0)
            if told["version"] < known:
                raise Failed(f"the board {mode} is at {told['version']}, and was at {known} when it was answered")
            return
        board = replay_scores(mode, scored) if scored else Board(mode)
        if (told["items"], told["version"], told["entries"]) != (board.items(), board.version, len(board.scores)):
            raise Failed(f"the board {mode} should be {board.items()} at {board.version}: {told}")

    def wait_until_told(self, listeners, view):
        """Waits until every stream has received the state of the view, and compares its last values with it."""
        heard = [Heard(stream, self) for stream in listeners.streams]
        try:
            wait_until(
                lambda: all(one.is_at(view) for one in heard), "every stream to tell what happened",
                problems=listeners.problems + self.problems,
            )
        except Failed as problem:
            behind = next((one for one in heard if not one.is_at(view)), None)
            raise Failed(f"{problem}, such as {behind.difference(view) if behind else 'none'}") from None
        for one in heard:
            if difference := one.difference(view):
                raise Failed(difference)


def board_path(mode):
    return f"/v1/challenges/crowd-{mode}"


class Person:
    """One user of the crowd: chooses the next action and knows its expected effect."""

    def __init__(self, crowd, user, number):
        self.crowd = crowd
        self.user = user
        self.number = number
        self.count = 0

    def step(self, client, choices, _):
        self.count += 1
        self.client = client
        self.choices = choices
        self.name = f"{self.crowd.seed}-{self.number}-{self.count}"
        [deed] = choices.choices(
            [self.send, self.read, self.delete, self.move, self.score, self.vote, self.like, self.look],
            [6, 3, 1, 1, 4, 3, 2, 3],
        )
        deed()

    def ask(self, wish, method, path, good, body=None, is_keyed=True, bearer=None):
        """Sends a request until it is answered. The pending request is visible to all checks in the meantime."""
        crowd = self.crowd
        with crowd.lock:
            crowd.pending[self.user] = wish
        content = crowd._until_answered(
            self.client, self.choices, method, path, bearer or crowd.bearers[self.user], good, body,
            self.name if is_keyed else None,
        )
        return json.loads(content)

    @contextlib.contextmanager
    def noting(self):
        """Records a response and removes the pending request in one step."""
        with self.crowd.lock:
            yield self.crowd
            del self.crowd.pending[self.user]
            self.crowd.changes += 1

    def is_lucky(self, chance=0.5):
        return self.choices.random() < chance

    def conversation(self):
        """Returns a conversation of the user; None if the user has left all."""
        crowd = self.crowd
        places = [name for name in crowd.conversations if (self.user, name) in crowd.places]
        return self.choices.choice(places) if places else None

    # MARK: Actions

    def send(self):
        if (conversation := self.conversation()) is None:
            return
        path, body = f"/v1/conversations/{conversation}/messages", {"text": self.name}
        # A retry is safe because of either the key or the client's own id.
        is_keyed = self.is_lucky()
        good = (201,) if is_keyed else (200, 201)
        if not is_keyed:
            body["id"] = f"m-{self.name}"
        answer = self.ask(("send", conversation, self.name), "POST", path, good, body, is_keyed)
        message = answer["message"]
        said = Said(message["id"], message["senderId"], message["text"])
        if (said.sender, said.text) != (self.user, self.name) or not is_keyed and said.id != body["id"]:
            raise Failed(f"{self.name} of {self.user} was answered by {message}")
        with self.noting() as crowd:
            known = crowd.said[conversation].setdefault(message["sequence"], said)
            if known is not said:
                raise Failed(f"{conversation} has two messages {message['sequence']}: {known} and {said}")

    def read(self):
        if (conversation := self.conversation()) is None:
            return
        with self.crowd.lock:
            last = max(self.crowd.said[conversation], default=0)
        place = self.crowd.places[self.user, conversation]
        sequence = last if self.is_lucky() else self.choices.randint(0, last)
        may_rewind = self.is_lucky(0.3)
        wanted = place.target(sequence, may_rewind)
        body = {"sequence": sequence, "allowRewind": may_rewind}
        path = f"/v1/conversations/{conversation}/read-position"
        answer = self.ask(("read", conversation, wanted), "PUT", path, (200,), body, self.is_lucky())
        if answer["readPosition"] != wanted:
            raise Failed(f"{self.user} reads {conversation} up to {wanted}: {answer}")
        with self.noting():
            place.position = wanted

    def delete(self):
        conversation = self.conversation()
        with self.crowd.lock:
            own = [
                said.id for said in self.crowd.said.get(conversation, {}).values()
                if said.sender == self.user and said.id not in self.crowd.deleted
            ]
        if not own:
            return
        message = self.choices.choice(own)
        path = f"/v1/conversations/{conversation}/messages/{message}"
        self.ask(("delete", message), "DELETE", path, (200,), is_keyed=self.is_lucky())
        with self.noting() as crowd:
            crowd.deleted.add(message)

    def move(self):
        """Leaves a conversation, or returns to it."""
        crowd = self.crowd
        conversation = self.choices.choice([name for name, first in crowd.conversations.items() if first != self.user])
        place = (self.user, conversation)
        path = f"/v1/conversations/{conversation}/members"
        # The key is needed. Without it, a retry of a completed leave would get a 404, and a retry of a completed join
        # would not return when the user joined.
        if place in crowd.places:
            self.ask(("move", conversation), "DELETE", f"{path}/me", (200,))
            with self.noting():
                del crowd.places[place]
        else:
            answer = self.ask(("move", conversation), "PUT", f"{path}/{self.user}", (200,), bearer=crowd.backend)
            with self.noting():
                crowd.places[place] = Place(answer["lastSequence"])

    def score(self):
        mode = self.choices.choice(MODES)
        points = self.choices.randint(-3, 9)
        path = f"{board_path(mode)}/scores"
        if self.is_lucky():
            user, bearer, body = self.user, None, {"score": points}
        else:
            # Several users thus add to one score at the same time.
            user, bearer = self.choices.choice(self.crowd.users), self.crowd.backend
            body = {"score": points, "userId": user}
        answer = self.ask(("score", mode), "POST", path, (200,), body, bearer=bearer)
        if answer["userId"] != user:
            raise Failed(f"a score of {user} was answered as {answer}")
        with self.noting() as crowd:
            crowd.scores[mode].append((points, answer))

    def vote(self):
        track, vote = self.choices.choice(self.crowd.tracks), self.choices.choice(["up", "up", "down", "none"])
        path = f"{SHOP}/dj/tracks/{track}/vote"
        answer = self.ask(("vote", track, vote), "PUT", path, (200,), {"vote": vote}, self.is_lucky())
        if (answer["trackId"], answer["userVote"]) != (track, vote):
            raise Failed(f"{vote} of {self.user} on {track} was answered by {answer}")
        with self.noting() as crowd:
            crowd.votes[self.user, track] = vote

    def like(self):
        post, is_liked = self.choices.choice(self.crowd.posts), self.is_lucky(0.6)
        path = f"/v1/posts/{post}/likes/me"
        method = "PUT" if is_liked else "DELETE"
        answer = self.ask(("like", post, is_liked), method, path, (200,), is_keyed=self.is_lucky())
        if answer["liked"] != is_liked:
            raise Failed(f"{method} {path} of {self.user} was answered by {answer}")
        with self.noting() as crowd:
            (crowd.likes.add if is_liked else crowd.likes.discard)((self.user, post))

    def look(self):
        """Checks that a user's own action is visible at once at every replica, while other users continue."""
        crowd = self.crowd
        what = self.choices.choice(["place", "score", "vote", "like"])
        if what == "place" and (conversation := self.conversation()):
            shown = self.get(f"/v1/conversations/{conversation}")["readPosition"]
            known = crowd.places[self.user, conversation].position
        elif what == "vote":
            shown = {item["trackId"]: item["userVote"] for item in self.get(f"{SHOP}/dj")["queue"]}
            known = {track: crowd.votes.get((self.user, track), "none") for track in crowd.tracks}
        elif what == "like":
            post = self.choices.choice(crowd.posts)
            shown, known = self.get(f"/v1/posts/{post}")["liked"], (self.user, post) in crowd.likes
        else:
            # Other users change boards too, but no board may be older than a response that preceded the request.
            mode = self.choices.choice(MODES)
            with crowd.lock:
                known = max((answer["version"] for _, answer in crowd.scores[mode]), default=0)
            version = self.get(f"{board_path(mode)}/leaderboard?around=me")["version"]
            shown = known if version >= known else version
        if shown != known:
            raise Failed(f"{self.user} looks for the own {what}, and is shown {shown}, and not {known}")

    def get(self, path):
        bearer = self.crowd.bearers[self.user]
        return json.loads(self.crowd._until_answered(self.client, self.choices, "GET", path, bearer, (200,)))


class View:
    """The state that one replica shows to every user of the crowd, at a moment without changes."""

    def __init__(self, crowd, replica):
        self.crowd = crowd
        self.replica = replica
        self.client = Client([replica])
        try:
            self.histories = {conversation: self._history(conversation) for conversation in crowd.conversations}
            self.badges, self.places, self.sessions, self.posts = {}, {}, {}, {}
            for user in crowd.users:
                counts = self._get("/v1/badges?include=conversations", user)
                # The time of the response is not part of the state.
                del counts["asOf"]
                self.badges[user] = counts
                self.places[user] = {one["id"]: one for one in self._get("/v1/conversations?limit=100", user)["items"]}
                self.sessions[user] = self._get(f"{SHOP}/dj", user)
                self.posts[user] = self._get("/v1/posts?authorId=author&limit=100", user)["items"]
            self.boards = {mode: self._get(f"{board_path(mode)}/leaderboard?limit=500") for mode in MODES}
            self.around = {
                (mode, user): self._get(f"{board_path(mode)}/leaderboard?around=me&limit={AROUND}", user)
                for mode in MODES for user in crowd.users
            }
        finally:
            self.client.close()
        self.votes = {
            user: {item["trackId"]: item["userVote"] for item in session["queue"]}
            for user, session in self.sessions.items()
        }
        self.likes = {user: {post["id"]: post["liked"] for post in posts} for user, posts in self.posts.items()}

    def _get(self, path, user=None):
        bearer = self.crowd.bearers[user] if user else self.crowd.backend
        status, _, content = self.client.ask(self.replica, "GET", path, bearer)
        if status != 200:
            raise Failed(f"GET {path} at {self.replica.name} answered {status}: {content[:300]!r}")
        return json.loads(content)

    def _history(self, conversation):
        history = []
        while True:
            last = history[-1]["sequence"] if history else 0
            page = self._get(f"/v1/conversations/{conversation}/messages?limit=100&since={last}")["items"]
            if not page:
                return history
            history += page

    def compare(self, other):
        for part in ("histories", "badges", "places", "sessions", "posts", "boards", "around"):
            mine, others = getattr(self, part), getattr(other, part)
            if differing := [key for key in mine if mine[key] != others[key]]:
                key = differing[0]
                raise Failed(
                    f"{part} of {key}: {self.replica.name} tells {mine[key]}, and {other.replica.name} {others[key]}"
                )

    def check_itself(self):
        """Recounts every displayed number from its items."""
        for conversation, history in self.histories.items():
            if (numbers := [message["sequence"] for message in history]) != list(range(1, len(history) + 1)):
                raise Failed(f"the messages of {conversation} are numbered {numbers}")
            if len({message["id"] for message in history}) != len(history):
                raise Failed(f"{conversation} has a message twice")
        for user in self.crowd.users:
            self._check_unread(user)
            for mode in MODES:
                self._check_around(mode, user)
        self._check_votes()
        self._check_likes()
        for mode, board in self.boards.items():
            scores = [item["score"] for item in board["items"]]
            if scores != sorted(scores, reverse=True) or len(scores) != board["entries"]:
                raise Failed(f"the board {mode} is in no order: {board}")
            for position, item in enumerate(board["items"], 1):
                if (item["position"], item["rank"]) != (position, 1 + scores.index(item["score"])):
                    raise Failed(f"the board {mode} has {item} at {position}: {board}")

    def _check_unread(self, user):
        unread = {}
        for name, place in self.places[user].items():
            history = self.histories[name]
            counted = sum(
                message["sequence"] > place["readPosition"] and message["senderId"] != user and not message["deletedAt"]
                for message in history
            )
            if (place["unread"], place["lastSequence"]) != (counted, len(history)):
                raise Failed(f"{user} has {counted} of {len(history)} unread in {name}: {place}")
            if counted:
                unread[name] = counted
        badges = self.badges[user]
        told = {one["conversationId"]: one["unread"] for one in badges["conversations"]}
        if told != unread or badges["messages"] != sum(unread.values()):
            raise Failed(f"{user} has unread messages in {unread}, and is told {badges}")
        if badges["total"] != badges["messages"] + badges["requests"] + badges["bell"]:
            raise Failed(f"the counts of {user} do not add up: {badges}")

    def _check_around(self, mode, user):
        board, around = self.boards[mode]["items"], self.around[mode, user]
        own = next((item for item in board if item["userId"] == user), None)
        near = board[max(0, own["position"] - 1 - AROUND):own["position"] + AROUND] if own else []
        if (around["me"], around["items"]) != (own, near):
            raise Failed(f"around {user} on the board {mode} is {near}: {around}")

    def _check_votes(self):
        for user, session in self.sessions.items():
            for position, item in enumerate(session["queue"], 1):
                votes = [votes[item["trackId"]] for votes in self.votes.values()]
                votes.append(self.crowd.votes["backend", item["trackId"]])
                counted = (votes.count("up"), votes.count("down"))
                told = (item["upvotes"], item["downvotes"])
                if told != counted or item["score"] != told[0] - told[1] or item["position"] != position:
                    raise Failed(f"{item['trackId']} has the votes {counted}, and {user} sees {item} at {position}")
            # Nothing is playing, so the order is by score and then by time of addition.
            order = [(-item["score"], self.crowd.tracks.index(item["trackId"])) for item in session["queue"]]
            if order != sorted(order) or len(order) != len(self.crowd.tracks):
                raise Failed(f"{user} sees the queue in no order: {session['queue']}")

    def _check_likes(self):
        for user, posts in self.posts.items():
            if {post["id"] for post in posts} != set(self.crowd.posts):
                raise Failed(f"{user} sees other posts: {posts}")
            for post in posts:
                counted = sum(likes[post["id"]] for likes in self.likes.values())
                if post["likeCount"] != counted:
                    raise Failed(f"{counted} like {post['id']}, and {user} sees {post}")


class Heard:
    """All events that a stream delivered to its user over its connections, interpreted as a client would."""

    def __init__(self, stream, crowd):
        self.stream = stream
        self.crowd = crowd
        self.read = 0
        self.where = f"{stream.user} at {stream.replica.name}"
        # For each conversation of the user, by the received events: the last message and the unread count.
        self.last = {}
        self.unread = {}
        self.badges = {"messages": 0, "requests": 0, "bell": 0, "total": 0, "version": 0}

    def _follow(self):
        facts = [fact for connection in list(self.stream.connections) for fact in list(connection.facts)]
        for fact in facts[self.read:]:
            self._take(fact.name, json.loads(fact.data))
        self.read = len(facts)

    def _take(self, name, data):
        user, conversation = self.stream.user, data.get("conversationId")
        if name == "conversation:updated" and user in data["joined"]:
            self.last[data["conversation"]["id"]] = data["conversation"]["lastSequence"]
            self.unread[data["conversation"]["id"]] = 0
        elif name == "conversation:removed":
            del self.last[conversation], self.unread[conversation]
        elif name == "message:created":
            message, known = data["message"], self.last.get(conversation)
            if known is None or message["sequence"] != known + 1:
                raise Failed(f"{self.where} heard message {message['sequence']} of {conversation} behind {known}")
            self.last[conversation] = message["sequence"]
        if "unread" in data and conversation in self.unread:
            self.unread[conversation] = data["unread"]
        badges = data if name == "badges:update" else data.get("badges")
        if badges and badges["version"] >= self.badges["version"]:
            self.badges = badges

    def is_at(self, view):
        self._follow()
        return self.difference(view) is None

    def difference(self, view):
        """Returns the difference between the stream's last values and the view; None if there is none."""
        user = self.stream.user
        places = view.places[user]
        for told, shown, what in (
            (self.last, {name: place["lastSequence"] for name, place in places.items()}, "the last messages"),
            (self.unread, {name: place["unread"] for name, place in places.items()}, "what is unread"),
            ({name: self.badges[name] for name in BADGES}, {name: view.badges[user][name] for name in BADGES}, "counts"),
        ):
            if told != shown:
                return f"{self.where} was told {what} as {told}, and not as {shown}"
        return None


BADGES = ("messages", "requests", "bell", "total", "version")


def judge_talk(crowd, log):
    """Checks that the log contains each message once, under its number, for the members at that time and for no other
    user."""
    rows = sorted(
        {(row.sequence, row.name, row.data, user) for user in crowd.users for row in log.of(user)}
    )
    members = {conversation: set() for conversation in crowd.conversations}
    told = {conversation: {} for conversation in crowd.conversations}
    for sequence, name, data, user in rows:
        data = json.loads(data)
        if name == "conversation:updated":
            members[data["conversation"]["id"]].update(data["joined"])
        elif name == "conversation:removed":
            members[data["conversationId"]].discard(user)
        elif name == "message:created":
            message = data["message"]
            # One transaction publishes it to each member, so the members are the same for all of these events.
            of_message = told[data["conversationId"]].setdefault(
                message["sequence"], (message, set(members[data["conversationId"]]), set())
            )
            if of_message[0] != message or user in of_message[2]:
                raise Failed(f"event {sequence} tells {user} of message {message} again, or of another than {of_message}")
            of_message[2].add(user)
    for conversation, messages in told.items():
        if list(messages) != list(range(1, len(crowd.said[conversation]) + 1)):
            raise Failed(f"the messages of {conversation} were told in the order {list(messages)}")
        for number, (message, there, heard) in messages.items():
            if heard != there or crowd.said[conversation][number].id != message["id"]:
                raise Failed(f"message {number} of {conversation} was told to {heard}, and not to {there}: {message}")


def play(crowd, listeners, rounds, kill):
    """Kills one replica after another while the crowd is active. After a kill all replicas must agree, whichever
    unanswered requests took effect. After the retries were answered, they must match the acknowledged writes.

    - kill: kills a replica, and returns once its sessions have left the database and the replica is back.
    """
    choices = random.Random(f"{crowd.seed}-blows")
    unanswered = 0
    crowd.set_up()
    with crowd:
        for _ in range(rounds):
            crowd.wait_for(choices.randint(10, 60))
            blow = Blow(choices.choice(crowd.replicas), choices)
            if choices.random() < 0.5:
                # Retried at once: requests that the killed replica sent to the database may still be in flight too.
                kill(blow)
            else:
                with crowd.unrepeated():
                    kill(blow)
                    with crowd.paused():
                        unanswered += len(crowd.pending)
                        crowd.check()
            crowd.wait_for(choices.randint(10, 40))
            with crowd.paused():
                crowd.wait_until_told(listeners, crowd.check())
    if crowd.pending:
        raise Failed(f"not answered: {crowd.pending}")
    crowd.wait_until_told(listeners, crowd.check())
    messages, scores = sum(map(len, crowd.said.values())), sum(map(len, crowd.scores.values()))
    return (
        f"{rounds} kills, {crowd.acknowledged} deeds of {len(crowd.users)} people, {messages} messages and {scores} scores "
        f"among them, {unanswered} requests held back unanswered, {crowd.replays} with a key found done, "
        f"{sum(len(stream.connections) - 1 for stream in listeners.streams)} resumptions"
    )


# MARK: One process on SQLite


def run(options, folder):
    service = Service(options.binary, folder)
    service.name = "the service"
    # These users do more than people would. The limit has separate tests.
    service.environment.update(BELLHOP_RATE_LIMIT_USER="0", BELLHOP_SELF_DECLARED="true")
    crowd = Crowd([service], "crowd", options.seed)

    def kill(blow):
        crowd.strike(blow)
        service.start()

    service.start()
    [[secret]] = database_rows(folder, SECRET_SQLITE)
    IDS.learn(secret)
    try:
        streams = [Stream(user, bearer, service) for user, bearer in crowd.bearers.items() for _ in range(2)]
        with Listeners(streams) as listeners:
            line = play(crowd, listeners, options.rounds, kill)
            [[newest]] = database_rows(folder, "SELECT max(sequence) FROM events WHERE audience LIKE '%user:%'")
            wait_until(
                lambda: max(stream.last_sequence for stream in streams) >= newest, "the last event to be told",
                problems=listeners.problems,
            )
        service.stop()
    finally:
        if service.process.poll() is None:
            service.kill()
    log = Log(database_rows(folder, f"SELECT {Log.COLUMNS} FROM events ORDER BY sequence"))
    [[epoch]] = database_rows(folder, "SELECT epoch FROM event_epochs")
    judge_streams(listeners, log, epoch)
    judge_talk(crowd, log)
    check = subprocess.run([options.binary, "check"], env=service.environment, capture_output=True, text=True)
    if check.returncode != 0:
        raise Failed(f"bellhop check found differences:\n{check.stdout}{check.stderr}")
    print(f"  {line}", flush=True)
    return options.rounds


if __name__ == "__main__":
    sys.exit(run_script("crowd", __doc__, run, rounds=5))
